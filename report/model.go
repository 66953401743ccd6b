package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley/method"
	"parley/problem"
)

// ReadModel reads a model from a results directory, its model folder, or the
// model's file itself.
func ReadModel(methods method.Registry, path string) (method.Model, error) {
	file, err := modelFile(path)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m, err := method.OpenModel(methods, data)
	if err == nil {
		return m, nil
	}
	if p := (problem.Problem{}); errors.As(err, &p) {
		p.File = file
		return nil, p
	}
	return nil, fmt.Errorf("%s: %w", file, err)
}

// SiteModel is the folder of a site in the directory of a run that has a model of the site's
// own subjects. Sites keep these to themselves, so that there is one only where the site is.
func SiteModel(path, site string) (string, error) {
	own := SiteIn(path, site)
	if _, err := modelFile(own); err != nil || !filepath.IsLocal(site) {
		return "", problem.Problem{File: path, Where: "site " + site, What: "there is no model of this site's own subjects here",
			Hint: "only sites that have random intercepts make one, in their own folders: give such a folder as MODEL, or leave the site out for subjects of a new one"}
	}
	return own, nil
}

func modelFile(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", problem.Problem{File: path, What: "there is no such model", Hint: "give a results directory, its model folder, or model.json"}
	}
	if err != nil || !info.IsDir() {
		return path, err
	}
	for _, name := range []string{"model/model.json", "model.json"} {
		file := filepath.Join(path, filepath.FromSlash(name))
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	p := problem.Problem{File: path, What: "there is no model in this directory", Hint: "give a results directory, its model folder, or model.json"}
	if _, err := os.Stat(filepath.Join(path, "provenance.json")); err == nil {
		p.What, p.Hint = "this run has not ended, so it has no model yet", "continue it with parley run and the same --out"
	}
	return "", p
}
