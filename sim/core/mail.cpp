// Messages between an AIC and the AIV cores of its block.
#include <utility>

#include "sim/core/core_state.h"

namespace sim {

std::vector<uint32_t> Rendezvous::Senders(uint32_t core) const {
    const uint32_t block = layout_.BlockOf(core);
    return layout_.IsCube(core) ? VectorsOf(block) : std::vector<uint32_t>{layout_.CubeOf(block)};
}

// Every sender has ended or shown its next mail: none can turn up that was sent earlier.
bool Rendezvous::MailDecided(uint32_t core) const {
    for (const uint32_t sender : Senders(core)) {
        const auto box = mail_.find({core, sender});
        if ((box == mail_.end() || box->second.empty()) && !left_[sender]) return false;
    }
    return true;
}

void Rendezvous::GoOn(uint32_t core) {
    waiting_[core].active = false;
    --waitingCount_;
}

void Rendezvous::LetReadersGo() {
    for (uint32_t core = 0; core < layout_.Count(); ++core)
        if (waiting_[core].active && waiting_[core].forMail && MailDecided(core)) GoOn(core);
}

// Nobody can go on: the mail sent first reaches its reader although other senders might still have sent an earlier one.
bool Rendezvous::DeliverFirst() {
    const Mail* first = nullptr;
    uint32_t reader = 0;
    for (const auto& [key, box] : mail_) {
        if (box.empty() || !waiting_[key.first].active || !waiting_[key.first].forMail) continue;
        if (first != nullptr && first->sent.time <= box.front().sent.time) continue;
        first = &box.front();
        reader = key.first;
    }
    if (first != nullptr) GoOn(reader);
    return first != nullptr;
}

void Rendezvous::Post(uint32_t to, Mail mail) {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        mail_[{to, mail.from}].push_back(std::move(mail));
        LetReadersGo();
    }
    changed_.notify_all();
}

Rendezvous::Outcome Rendezvous::Collect(uint32_t core, const char* call, Location where, Mail* mail,
                                        const std::function<void()>& stepAside) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!MailDecided(core)) {
        waiting_[core] = {true, kNoFlag, where, call};
        const Outcome outcome = Block(lock, core, [&] { return !waiting_[core].active; }, stepAside);
        waiting_[core].forMail = nullptr;
        if (outcome != Outcome::Released) return outcome;
    }
    std::deque<Mail>* earliest = nullptr;
    for (const uint32_t sender : Senders(core)) {
        std::deque<Mail>& box = mail_[{core, sender}];
        if (!box.empty() && (earliest == nullptr || box.front().sent.time < earliest->front().sent.time)) earliest = &box;
    }
    if (earliest == nullptr) return failed_ ? Outcome::Abandoned : Outcome::Released;
    *mail = std::move(earliest->front());
    earliest->pop_front();
    return Outcome::Released;
}

void CoreState::Send(uint32_t to, std::shared_ptr<void> message, Pipe pipe, Location where) {
    if (aborted_) return;
    Reach("CrossCoreSetFlag", where);
    Rendezvous::Mail mail{Arrive(pipe, where), index_, std::move(message)};
    mail.sent.time = timeline_.SetCross(pipe, index_, &mail.sent.signals);
    launch_.rendezvous.Post(to, std::move(mail));
}

void Core::SendToCube(std::shared_ptr<void> message, Pipe pipe, Location where) {
    state_.Send(state_.launch_.layout.CubeOf(state_.launch_.layout.BlockOf(state_.index_)), std::move(message), pipe, where);
}

void Core::SendToVector(uint32_t subBlock, std::shared_ptr<void> message, Pipe pipe, Location where) {
    state_.Send(state_.launch_.layout.VectorOf(state_.launch_.layout.BlockOf(state_.index_), subBlock), std::move(message), pipe, where);
}

std::shared_ptr<void> Core::Receive(const char* call, uint32_t* subBlock, Location where) {
    CoreState& s = state_;
    if (s.aborted_) return nullptr;
    s.Reach(call, where);
    Rendezvous::Mail mail;
    const Rendezvous::Outcome outcome = s.launch_.rendezvous.Collect(s.index_, call, where, &mail, s.launch_.stepAside);
    if (outcome == Rendezvous::Outcome::Abandoned) s.AbortSilently();
    if (outcome == Rendezvous::Outcome::Deadlock) s.ReportDeadlock(call, where);
    if (mail.content == nullptr) return nullptr;
    s.timeline_.WaitCross(Pipe::S, mail.sent.time, std::move(mail.sent.signals));
    s.Learn(Pipe::S, call, where, mail.sent.known);
    if (!s.fast_)   // what the sender had waited for, of this core
        if (const Clock* own = mail.sent.known.Of(s.index_)) s.order_.Wait(Pipe::S, *own);
    if (subBlock != nullptr) *subBlock = s.launch_.layout.SubBlockOf(mail.from);
    return mail.content;
}

bool Core::NeedsBothKinds(Location where) {
    CoreState& s = state_;
    const KernelType known = s.launch_.declared.type != KernelType::Undeclared ? s.launch_.declared.type : s.task_.type;
    if (known == KernelType::Undeclared) s.Declare(KernelType::MixAic12, /*ofKey=*/false, where);
    return Mixed();
}

}  // namespace sim
