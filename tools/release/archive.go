package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive: its name with forward slashes, and what it holds.
type entry struct {
	name    string
	data    []byte
	program bool // may be executed
}

func (e entry) mode() int64 {
	if e.program {
		return 0o755
	}
	return 0o644
}

// folder reads all files below a folder, for a place in an archive.
func folder(dir, place string) (entries []entry, err error) {
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err == nil {
			entries = append(entries, entry{name: path.Join(place, filepath.ToSlash(name)), data: data})
		}
		return err
	})
	return entries, err
}

// sorted returns the entries by name, below a folder.
func sorted(entries []entry, below string) []entry {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].name = path.Join(below, entries[i].name)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return entries
}

// parents are the folders in which the sorted entries lie, each before what is in it.
func parents(entries []entry) (dirs []string) {
	seen := map[string]bool{".": true, "": true}
	var add func(dir string)
	add = func(dir string) {
		if !seen[dir] {
			seen[dir] = true
			add(path.Dir(dir))
			dirs = append(dirs, dir)
		}
	}
	for _, e := range entries {
		add(path.Dir(e.name))
	}
	return dirs
}

// tarball is a tar archive, packed with gzip. All files belong to root and bear one
// time. The prefix is put before names, as Debian wants its "./".
func tarball(entries []entry, prefix string, made time.Time) ([]byte, error) {
	var b bytes.Buffer
	packed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(packed)
	header := func(kind byte, name string, size, mode int64) error {
		return w.WriteHeader(&tar.Header{Typeflag: kind, Name: prefix + name, Size: size, Mode: mode,
			Uname: "root", Gname: "root", ModTime: made, Format: tar.FormatGNU})
	}
	dirs := parents(entries)
	if prefix != "" {
		dirs = slices.Insert(dirs, 0, "")
	}
	for _, dir := range dirs {
		if err := header(tar.TypeDir, strings.TrimPrefix(dir+"/", "/"), 0, 0o755); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		if err := header(tar.TypeReg, e.name, int64(len(e.data)), e.mode()); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = packed.Close()
	return b.Bytes(), err
}

// zipped is a zip archive, for Windows.
func zipped(entries []entry, made time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: made}
		header.SetMode(fs.FileMode(e.mode()))
		file, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// packed is one file, packed with gzip.
func packed(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}
