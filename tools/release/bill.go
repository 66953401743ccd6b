package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

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
