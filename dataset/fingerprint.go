package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Fingerprint identifies the data set's files, so that a run that is resumed
// can tell whether its data have changed: SHA-256, in hexadecimal, over one
// line "digest  name" for each file that is read, where digest is SHA-256 of
// the file as it is stored and name is its name within the folder, subjects
// first and then the views in ascending order of name. Compressing a file
// anew therefore changes it; moving the folder does not. It says nothing of a
// person, but whoever has a guess of the data can confirm it: keep it at the
// site.
func (d *Dir) Fingerprint(ctx context.Context) (string, error) {
	all := sha256.New()
	for _, t := range d.tables() {
		digest, err := fileDigest(ctx, t.in.path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(all, "%s  %s\n", digest, filepath.Base(t.in.path))
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

func fileDigest(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
	}
}
