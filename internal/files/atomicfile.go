// Package files writes files as a whole, holds a folder or a file against other
// processes, and says how much room a disk has. A file is as private as the folder that
// it comes into: where others may not look, it is its owner's alone. Locks are advisory,
// on a file beside what they hold, and the operating system ends them with the process,
// however that ends.
package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Write makes data the content of the file at path; see [Stream].
func Write(path string, data []byte) error {
	return Stream(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteJSON makes a value the content of a file, for people to read too; see [Stream].
func WriteJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return Write(path, append(data, '\n'))
}

// WriteOwn is Write of a file that its owner alone may read, wherever it is.
func WriteOwn(path string, data []byte) error {
	if err := sweep(path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return put(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}, os.Rename, true)
}

// Checksum is a checksum for files that people copy by hand: the CRC-32, in hexadecimal.
func Checksum(data []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(data)) }

// Decode reads JSON of which every byte counts: a name that v does not have is an error,
// and so is anything after it.
func Decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}
	return nil
}

// Stream makes what write writes the content of the file at path, and makes
// the folders that lead there. After a crash or an error the file holds what it
// held before; after success it holds the new content, durably, and what earlier
// crashes left half written is gone. There must be no other writer of the path.
func Stream(path string, write func(io.Writer) error) error {
	if err := sweep(path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return put(path, 0o644, write, os.Rename, true)
}

// Derive is Stream of a file that the same command makes again from what is durable: whoever reads it finds it
// whole, but it waits for no disk, so that a crash of the machine may lose it.
func Derive(path string, write func(io.Writer) error) error {
	return put(path, 0o644, write, os.Rename, false)
}

// Create is Stream for a file that must be new: it is an [fs.ErrExist] if
// anything has the name by the time the content is complete, be it a file, a
// folder, or a symbolic link wherever it leads. Of several writers of the path
// one succeeds, and the others replace nothing.
func Create(path string, write func(io.Writer) error) error {
	err := put(path, 0o644, write, publish, true)
	if err == nil {
		// Not before: what looks like a leftover may be the part of somebody who
		// creates the same file, who has lost only now. One that cannot be removed
		// does not make this file any less complete.
		sweep(path)
	}
	return err
}

// put writes a part beside the file and lets place give it the file's name.
func put(path string, mode fs.FileMode, write func(io.Writer) error, place func(part, path string) error,
	durable bool) (err error) {
	defer func() {
		if err != nil {
			var part *fs.PathError
			if errors.As(err, &part) && Leftover(path, filepath.Base(part.Path)) {
				part.Path = path // whose name does not change from one attempt to the next
			}
			err = fmt.Errorf("writing %s: %w", path, err)
		}
	}()
	dir := filepath.Dir(path)
	allowed, err := folder(dir)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, prefix(path)+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once the part is the file, as it should
	buffered := bufio.NewWriterSize(f, 1<<16)
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Chmod(mode & (allowed | 0o600))
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	if !durable || runtime.GOOS == "windows" { // where folders cannot be synced
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// folder makes dir, and what leads there, as private as the last folder that was
// there before, and returns what others may do in it.
func folder(dir string) (fs.FileMode, error) {
	info, err := os.Stat(dir)
	if err == nil {
		return info.Mode().Perm(), nil
	}
	above := filepath.Dir(dir)
	if !errors.Is(err, fs.ErrNotExist) || above == dir {
		return 0, err
	}
	mode, err := folder(above)
	if err != nil {
		return 0, err
	}
	mode = 0o755 & (mode | 0o700)
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return 0, err
	}
	return mode, nil
}

var link = os.Link // tests have file systems without

// publish gives a part its name unless something has it. Unlike a renaming, a
// link replaces nothing. Where there are no links, an empty file is created to
// reserve the name, which fails if anything has it, and the part replaces that.
func publish(part, path string) error {
	if link(part, path) == nil {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = f.Close()
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}

// Leftover says whether name, in the folder of the file at path, is a part of
// that file which a crash left.
func Leftover(path, name string) bool {
	number, ok := strings.CutPrefix(name, prefix(path))
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

func prefix(path string) string { return "." + filepath.Base(path) + "-" }

// sweep removes what crashes left of the file at path.
func sweep(path string) error {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if Leftover(path, e.Name()) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Failed says whether err is of a file that could not be read or written. Where the
// disk was full, the same may succeed later.
func Failed(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.As(err, &path) || errors.As(err, &link)
}
