package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"os"
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
