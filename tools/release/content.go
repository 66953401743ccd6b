package main

import (
	"os"
	"path/filepath"
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
