package live

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"parley/engine/host"
	"parley/federation"
	"parley/federation/coordinator"
	"parley/federation/site"
	"parley/privacy/ledger"
	"parley/sitestore"
)

// OfCoordinator is what a coordinator's folder shows.
func OfCoordinator(f *coordinator.Folder) Source { return coordinating{f, &tail{}} }

type coordinating struct {
	*coordinator.Folder
	log *tail
}

func (c coordinating) View(context.Context) (*View, error) {
	s, err := c.ReadStatus()
	if err != nil {
		return nil, err
	}
	v := &View{Title: "Coordinator", Says: "the broker is " + s.Broker}
	for _, x := range s.Sites {
		one := standing{Name: x.Site, State: x.State}
		if x.Program != nil {
			one.Text = fmt.Sprintf("parley %s on %s", x.Program.Version, x.Program.Platform)
		}
		v.Sites = append(v.Sites, one)
	}
	for _, x := range s.Studies {
		one := study{ID: x.Study, Name: x.Name, State: x.State, Text: x.Text, Round: x.Round, Done: x.Progress, Of: x.Of}
		for _, y := range x.Sites {
			one.Sites = append(one.Sites, standing{Name: y.Site, State: y.State, Text: y.Text})
		}
		v.Studies = append(v.Studies, one)
	}
	v.Log, err = c.log.lines(c.Path)
	return v, err
}

// OfSite is what a site's folder shows; a person decides there.
func OfSite(f *site.Folder) Source { return taking{f, &tail{}} }

type taking struct {
	*site.Folder
	log *tail
}

func (t taking) View(context.Context) (*View, error) {
	s, err := t.ReadStatus()
	if err != nil {
		return nil, err
	}
	v := &View{Title: "Site " + s.Site, Says: "connected to the coordinator"}
	if !s.Connected {
		v.Says = "not connected to the coordinator: " + s.Trouble
	} else if s.Trouble != "" {
		v.Says = s.Trouble
	}
	for _, x := range s.Studies {
		v.Studies = append(v.Studies, study{ID: x.Study, Name: x.Name, State: x.State, Text: x.Text, Pending: x.State == federation.Pending})
	}
	v.Log, err = t.log.lines(t.Path)
	return v, err
}

func (t taking) Show(ctx context.Context, study string) (string, error) {
	study, err := t.Find(study) // what a browser sends is no part of a path before it was found
	if err != nil {
		return "", err
	}
	p, err := t.Preview(ctx, study)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if err := p.Text(&text); err != nil {
		return "", err
	}
	keys, err := t.Keys(study)
	if err != nil {
		return "", err
	}
	if len(keys) > 0 {
		text.WriteString("\nThe sites' public keys\n")
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&text, "  %-20s %s\n", name, keys[name])
	}
	return text.String(), nil
}

func (t taking) Approve(ctx context.Context, study string) error {
	study, err := t.Find(study)
	if err != nil {
		return err
	}
	return t.Folder.Approve(ctx, study, host.ByPerson+" at the live page")
}

func (t taking) Refuse(_ context.Context, study, reason string) error {
	study, err := t.Find(study)
	if err != nil {
		return err
	}
	return t.Folder.Refuse(study, reason)
}

// delta is that at which a budget is counted where no guarantee names one.
const delta = 1e-5

func (t taking) Budget(context.Context) (string, error) {
	rules, err := t.Policy()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = sitestore.Look(t.StorePath(), func(s *sitestore.Store) error {
		charged, err := ledger.Read(s)
		if err != nil {
			return err
		}
		v, err := charged.Look(delta, &rules)
		if err != nil {
			return err
		}
		return v.Text(&text)
	})
	return text.String(), err
}

// mostLines are shown of an audit log.
const mostLines = 50

// tail keeps the last lines of a log, which is read again only when it has grown.
type tail struct {
	mu   sync.Mutex
	size int64
	last []federation.LogEntry // newest first
}

func (t *tail) lines(dir string) ([]federation.LogEntry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	file := filepath.Join(dir, "audit.jsonl")
	info, err := os.Stat(file)
	if err != nil || info.Size() == t.size {
		return t.last, err
	}
	var last []federation.LogEntry
	err = federation.ReadLog(file, func(e federation.LogEntry) error {
		e.Previous = ""
		if last = append(last, e); len(last) > 2*mostLines {
			last = slices.Clone(last[mostLines:])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	last = last[max(0, len(last)-mostLines):]
	slices.Reverse(last)
	t.size, t.last = info.Size(), last
	return last, nil
}
