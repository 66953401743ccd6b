package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"path"
	"strings"
	"time"
)

// A Debian package is an ar archive of three members: the format's version, a tar
// archive with what dpkg wants to know, and one with the files (deb(5)).

// debianVersion is a semantic version as Debian sorts it: 0.1.0~rc1 before 0.1.0.
func debianVersion(version string) string { return strings.Replace(version, "-", "~", 1) }

// debian is the package of a program and what lies beside it in an archive.
func debian(entries []entry, version, arch string, made time.Time) ([]byte, error) {
	files, err := installed(entries)
	if err != nil {
		return nil, err
	}
	files = sorted(files, "")
	var digests strings.Builder
	kib := 0 // each file takes whole blocks of 1 KiB
	for _, f := range files {
		fmt.Fprintf(&digests, "%x  %s\n", md5.Sum(f.data), f.name)
		kib += (len(f.data) + 1023) / 1024
	}
	about := fmt.Sprintf(control, debianVersion(version), arch, kib)
	member, err := tarball(sorted([]entry{
		{name: "control", data: []byte(about)},
		{name: "md5sums", data: []byte(digests.String())},
		{name: "postinst", data: []byte(afterInstall), program: true},
		{name: "prerm", data: []byte(beforeRemoval), program: true},
		{name: "postrm", data: []byte(afterRemoval), program: true},
	}, ""), "./", made)
	if err != nil {
		return nil, err
	}
	data, err := tarball(files, "./", made)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", member}, {"data.tar.gz", data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, made.Unix(), 0, 0, "100644", len(m.data))
		b.Write(m.data)
		if len(m.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// installed are the entries of an archive where Debian wants them. Those that it has
// no place for, such as completions of PowerShell, are left out.
func installed(entries []entry) ([]entry, error) {
	const doc = "usr/share/doc/parley/"
	places := map[string]string{
		"parley":                              "usr/bin/parley",
		"completions/parley.bash":             "usr/share/bash-completion/completions/parley",
		"completions/parley.fish":             "usr/share/fish/vendor_completions.d/parley.fish",
		"completions/_parley":                 "usr/share/zsh/vendor-completions/_parley",
		"LICENSE":                             doc + "copyright",
		"NOTICE":                              doc + "NOTICE",
		"deploy/parley-site.service":          "usr/lib/systemd/system/parley-site.service",
		"deploy/parley-coordinator.service":   "usr/lib/systemd/system/parley-coordinator.service",
		"deploy/prometheus-alerts.yaml":       doc + "examples/prometheus-alerts.yaml",
		"deploy/grafana-dashboard.json":       doc + "examples/grafana-dashboard.json",
		"deploy/parley-coordinator.service.d": doc + "examples/parley-coordinator.service.d",
	}
	var files []entry
	for _, e := range entries {
		place, known := places[e.name]
		if dir, ok := places[path.Dir(e.name)]; ok && !known {
			place, known = dir+"/"+path.Base(e.name), true
		}
		var err error
		switch {
		case strings.HasSuffix(e.name, ".service"):
			e.data = bytes.ReplaceAll(e.data, []byte("/usr/local/bin/"), []byte("/usr/bin/"))
		case strings.HasPrefix(e.name, "man/"):
			place, known = "usr/share/"+e.name+".gz", true
			e.data, err = packed(e.data)
		case e.name == "CHANGELOG.md":
			place, known = doc+"changelog.gz", true
			e.data, err = packed(e.data)
		}
		if err != nil {
			return nil, err
		}
		if known {
			e.name = place
			files = append(files, e)
		}
	}
	return files, nil
}

const control = `Package: parley
Version: %s
Architecture: %s
Maintainer: The Parley authors <parley@example.org>
Installed-Size: %d
Depends: passwd
Recommends: ca-certificates
Section: science
Priority: optional
Description: federated Bayesian learning for multi-centre studies
 Parley fits one Bayesian model to the data of several sites, while no
 subject's row leaves a site. A study is described by a plan, one YAML file.
 .
 The package has the program, its manual pages, and units for a coordinator
 and a site, which are neither enabled nor started before they are set up.
`

// The units are for people to enable: before 'coordinator init' or 'site join' they
// have nothing to serve. The user owns the folders of both.
const afterInstall = `#!/bin/sh
set -e
if [ "$1" = configure ] && ! getent passwd parley >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/parley --shell /usr/sbin/nologin parley
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
`

// An upgrade leaves daemons running: when to restart one is for its operator to say.
const beforeRemoval = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now parley-site.service parley-coordinator.service
fi
`

// Keys, ledgers and the user who owns them stay, after a purge too.
const afterRemoval = `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
`
