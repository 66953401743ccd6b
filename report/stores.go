package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"parley/engine/local"
	"parley/problem"
)

// FindStore returns the path of a site's store. Path is the store itself, the
// site's folder, a folder of stores, or a run's results. Site may be empty
// where there is one store only.
func FindStore(path, site string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", problem.Problem{File: path, What: "there is no such store and no such results"}
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return path, nil
	}
	stores := map[string]string{} // by site
	for _, folder := range []string{path, local.StoresIn(path)} {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, e := range entries {
			if file := local.StorePath(folder, e.Name()); isFile(file) {
				stores[e.Name()] = file
			}
		}
	}
	if own := local.StorePath(filepath.Dir(filepath.Clean(path)), filepath.Base(path)); isFile(own) {
		stores[filepath.Base(path)] = own
	}
	var sites []string
	for name := range stores {
		sites = append(sites, name)
	}
	slices.Sort(sites)
	switch file, ok := stores[site]; {
	case ok:
		return file, nil
	case len(sites) == 0:
		return "", problem.Problem{File: path, What: "no site's store is here", Hint: "the folder that the plan's local.stores named, or results of a plan without it"}
	case site != "":
		return "", problem.Problem{File: path, What: fmt.Sprintf("site %q has no store here", site), Hint: problem.DidYouMean(site, sites, "there are those of "+problem.Names(sites))}
	case len(sites) > 1:
		return "", problem.Problem{File: path, What: fmt.Sprintf("%d sites have stores here", len(sites)), Hint: "choose with --site one of " + problem.Names(sites)}
	}
	return stores[sites[0]], nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
