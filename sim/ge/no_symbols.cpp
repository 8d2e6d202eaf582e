// A library that only has to exist: it is in the dependency lists of torchair, which uses nothing from it.
