"""From a Hugging Face checkpoint to a proven, exported, running model on these operators: `custom-ops onboard`."""
