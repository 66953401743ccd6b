package acceptance

import "golang.org/x/sys/unix"

// limit makes every write of a process fail that would make a file longer than so
// many bytes, until it is freed: the nearest to a full disk that needs no rights. A
// write that goes beyond is torn, as it is there. (The error is EFBIG, not ENOSPC.)
func limit(process int, bytes uint64) error {
	return unix.Prlimit(process, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil)
}

func unlimit(process int) error { return limit(process, unix.RLIM_INFINITY) }
