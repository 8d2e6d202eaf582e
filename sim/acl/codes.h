// aclError values the runtime gives, by the device's numbers.
#pragma once

namespace sim::acl {

enum Code : int {
    kSuccess = 0,
    kBadParameter = 100000,             // of ACL itself; the runtime below it has its own
    kNotInitialised = 100001,
    kRepeatedInit = 100002,
    kInvalidFile = 100003,
    kThreadNotSubscribed = 100035,
    kCallbackTimeout = 100036,

    kInvalidParameter = 107000,
    kInvalidDevice = 107001,
    kContextNull = 107002,
    kStreamNotInContext = 107003,
    kEventTimestampInvalid = 107006,    // no time line, or not recorded
    kEventTimestampReversal = 107007,
    kStreamSubscribed = 107011,
    kStreamNoCallback = 107015,
    kInvalidHandle = 107017,
    kWaitTimeout = 107019,
    kCaptureDependency = 107024,        // a capturing stream waits for work outside its capture
    kStreamUnjoined = 107025,
    kModelCaptured = 107026,
    kStreamCaptured = 107027,
    kEventCaptured = 107028,
    kStreamNotCaptured = 107029,
    kCaptureModeRefuses = 107030,
    kTaskGroupStatus = 107033,
    kCaptureUnmatched = 107036,
    kModelRunning = 107037,
    kCaptureWrongThread = 107038,
    kModelUpdateFailed = 107040,
    kCaptureBlockingCopy = 107041,      // an asynchronous copy that would have to wait

    kFeatureNotSupported = 207000,
    kOutOfMemory = 207001,
    kMemoryFree = 207002,

    kInternalError = 507000,
    kVectorCoreTimeout = 507034,
    kVectorCoreException = 507035,
    kStreamSyncTimeout = 507046,
    kEventSyncTimeout = 507047,
    kCaptureInvalidated = 507903,
    kHostMemoryRegistered = 507910,
    kHostMemoryNotRegistered = 507911,
};

}  // namespace sim::acl
