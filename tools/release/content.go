package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// content is all that the files of one target are made of.
type content struct {
	root      string // of the source
	program   []byte // as it was built
	bill      []byte // of its materials
	documents []entry
	target    target
	version   string // semantic
	made      time.Time
}

// write writes the target's files into a folder.
func (c content) write(out string) error {
	entries := append([]entry{{name: c.target.program(), data: c.program, program: true}}, c.documents...)
	for _, name := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(c.root, name))
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: name, data: data})
	}
	deploy, err := folder(filepath.Join(c.root, "deploy"), "deploy")
	if err != nil {
		return err
	}

	name := "parley-" + c.version + "-" + c.target.os + "-" + c.target.arch
	files := map[string]func() ([]byte, error){
		name + ".cdx.json": func() ([]byte, error) { return c.bill, nil },
	}
	switch c.target.os {
	case "windows":
		files[name+".zip"] = func() ([]byte, error) { return zipped(sorted(entries, name), c.made) }
	case "linux":
		entries = append(entries, deploy...)
		files["parley_"+debianVersion(c.version)+"_"+c.target.arch+".deb"] = func() ([]byte, error) {
			return debian(entries, c.version, c.target.arch, c.made)
		}
		fallthrough
	default:
		files[name+".tar.gz"] = func() ([]byte, error) { return tarball(sorted(entries, name), "", c.made) }
	}
	for file, make := range files {
		data, err := make()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, file), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// component is a module in CycloneDX's words. Property go:sum is the hash by which go.sum
// knows the module.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	URL        string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

type document struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	} `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

// bill is the software bill of materials of a built program, a CycloneDX 1.5 document:
// the modules that the linker put in, as the program itself records them, and Go's
// standard library.
func bill(binary, version string, made time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	module := func(kind, path, version, sum string) component {
		url := "pkg:golang/" + strings.ToLower(path) + "@" + version
		c := component{Type: kind, Ref: url, Name: path, Version: version, URL: url}
		if sum != "" {
			c.Properties = []property{{"go:sum", sum}}
		}
		return c
	}
	d := document{Format: "CycloneDX", Spec: "1.5", Version: 1}
	d.Metadata.Timestamp = made.Format(time.RFC3339)
	d.Metadata.Component = module("application", info.Main.Path, version, "")
	d.Components = []component{module("library", "stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		d.Components = append(d.Components, module("library", m.Path, m.Version, m.Sum))
	}
	slices.SortFunc(d.Components, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	all := dependency{Ref: d.Metadata.Component.Ref}
	for _, c := range d.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	d.Dependencies = []dependency{all}
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}

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
