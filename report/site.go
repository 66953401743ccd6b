package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"parley/engine/local"
	"parley/method"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/problem"
	"parley/study"
)

// Site is what one site of a run leaves, for its own people. Nobody but its owner
// can read it.
type Site struct {
	folder
	name   string
	plan   *study.Plan
	digest string
}

// siteProvenance is what only a site may know of its data: a fingerprint
// confirms the guess of whoever guesses the data.
type siteProvenance struct {
	Site string `json:"site"`
	Plan string `json:"plan_sha256"`
	Data string `json:"data_sha256"`
}

// storeName is the site's store, if the run keeps it here: where there is one,
// something may have been computed.
const storeName = "site.db"

// SiteIn is the folder of a site in the directory of a simulation.
func SiteIn(path, site string) string { return filepath.Join(path, "sites", site) }

// OpenSite makes path the directory of a site's part in a run, on data with this
// fingerprint. One whose run began on other data is refused and left as it is.
func OpenSite(path string, plan *study.Plan, site, data string) (*Site, error) {
	digest, err := plan.Digest()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	d := &Site{folder: folder{path}, name: site, plan: plan, digest: digest.String()}
	var old siteProvenance
	file := filepath.Join(path, "provenance.json")
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isFile(filepath.Join(path, storeName)):
		return d, d.writeJSON("provenance.json", siteProvenance{Site: site, Plan: d.digest, Data: data})
	case err == nil:
		err = json.Unmarshal(text, &old)
	}
	if err != nil {
		return nil, fmt.Errorf("site %s: which data this run began on is not known any more: %w", site, err)
	}
	if old.Data != data {
		return nil, problem.Problem{File: path, What: "the data have changed since this run began",
			Hint: "put the data back to continue it, or choose another directory with --out for a new run"}
	}
	return d, nil
}

// Write stores what the site's people may see: the method's result, and what the
// site's own ledger says, against its policy if it has one. ledger may be nil.
func (d *Site) Write(own *method.Result, charged *ledger.Ledger, rules *policy.Policy) error {
	r := *own
	spent, err := spending(d.plan, d.digest, charged, rules)
	if err != nil {
		return err
	}
	if spent != nil {
		r.Sections = append(slices.Clip(r.Sections), spent.section())
		if err := d.writeJSON("privacy.json", spent); err != nil {
			return err
		}
	}
	return d.writeResult(&r, d.page(&r))
}

func (d *Site) page(r *method.Result) *Report {
	return &Report{
		Title: d.plan.Name + ", " + d.name, Subtitle: d.plan.Question, Found: r.Found, Sure: r.Sure,
		Headline: r.Headline, Meta: meta(d.plan, d.digest), Local: true,
		Sections: r.Sections,
	}
}

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
	sites := slices.Sorted(maps.Keys(stores))
	switch file, ok := stores[site]; {
	case ok:
		return file, nil
	case len(sites) == 0:
		return "", problem.Problem{File: path, What: "no site's store is here",
			Hint: "the folder that the plan's local.stores named, or results of a plan without it"}
	case site != "":
		return "", problem.Problem{File: path, What: fmt.Sprintf("site %q has no store here", site),
			Hint: problem.DidYouMean(site, sites, "there are those of "+problem.Names(sites))}
	case len(sites) > 1:
		return "", problem.Problem{File: path, What: fmt.Sprintf("%d sites have stores here", len(sites)),
			Hint: "choose with --site one of " + problem.Names(sites)}
	}
	return stores[sites[0]], nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
