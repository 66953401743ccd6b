package files

import (
	"errors"
	"io/fs"
	"os"
)

// Failed says whether err is of a file that could not be read or written. Where the
// disk was full, the same may succeed later.
func Failed(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.As(err, &path) || errors.As(err, &link)
}
