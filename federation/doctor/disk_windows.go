package doctor

import (
	"path/filepath"
	"strings"
)

// sameDisk says whether two files are on one disk, as far as that can be known.
func sameDisk(a, b string) bool {
	x, err1 := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && strings.EqualFold(filepath.VolumeName(x), filepath.VolumeName(y))
}
