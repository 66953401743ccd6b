package files

import "golang.org/x/sys/windows"

// Free returns how many bytes this user may still write to the disk that
// holds path.
func Free(path string) (uint64, error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var free uint64
	return free, windows.GetDiskFreeSpaceEx(p, &free, nil, nil)
}
