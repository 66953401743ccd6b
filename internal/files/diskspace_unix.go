//go:build unix

package files

import "golang.org/x/sys/unix"

// Free returns how many bytes this user may still write to the disk that
// holds path.
func Free(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
