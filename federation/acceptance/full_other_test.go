//go:build unix && !linux

package acceptance

// limit does nothing where a running process cannot be limited.
func limit(int, uint64) error { return nil }

func unlimit(int) error { return nil }

func handles(int, uint64) error { return nil }

const enoughHandles = 0
