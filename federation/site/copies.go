package site

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Copies are what a daemon keeps of its folder elsewhere.
type Copies struct {
	Folder string        // empty: none are made
	Every  time.Duration // the least time between two
}

// copiesKept is how many there are of a site before the oldest goes: a fault that is noticed late is in the newest.
const copiesKept = 7

// keepCopies copies the folder as [Folder.Backup] does, when something of it has changed.
func (d *Daemon) keepCopies(ctx context.Context) {
	copied := ""
	for {
		if stamp := d.Folder.contents(); stamp != copied {
			err := d.Folder.copyTo(d.Copies.Folder, time.Now())
			if err == nil {
				copied = stamp
			}
			d.once.Say(d.Log, "copying the site to "+d.Copies.Folder, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(d.Copies.Every):
		}
	}
}

// contents tells two states of what is copied apart, the audit log aside, which every copy adds to.
func (f *Folder) contents() string {
	var b strings.Builder
	note := func(path string, info fs.FileInfo) { fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano()) }
	for _, path := range []string{f.StorePath(), f.StorePath() + "-wal", f.File(keyFile), f.File(configFile),
		f.PolicyPath()} {
		if info, err := os.Stat(path); err == nil {
			note(path, info)
		}
	}
	for _, name := range []string{"studies", "results"} {
		filepath.WalkDir(f.File(name), func(path string, e fs.DirEntry, err error) error {
			if err == nil {
				if info, err := e.Info(); err == nil { // it may have gone meanwhile
					note(path, info)
				}
			}
			return nil
		})
	}
	return b.String()
}

// copyTo makes a copy named for the site and the time, whole or not at all, and removes the oldest.
func (f *Folder) copyTo(folder string, now time.Time) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	part := filepath.Join(folder, "."+f.Config.Site+".part")
	if err := os.RemoveAll(part); err != nil { // of an earlier process
		return err
	}
	err := f.Backup(part)
	if err == nil {
		err = os.Rename(part, filepath.Join(folder, f.Config.Site+"-"+now.UTC().Format(copyTime)))
	}
	if err != nil {
		os.RemoveAll(part)
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		at, of := strings.CutPrefix(e.Name(), f.Config.Site+"-")
		_, err := time.Parse(copyTime, at)
		return !of || err != nil
	})
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(b.Name(), a.Name()) })
	for _, e := range entries[min(copiesKept, len(entries)):] {
		if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

const copyTime = "20060102T150405.000Z"
