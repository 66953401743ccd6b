package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/testkit"
)

var made = time.Unix(1_700_000_000, 0).UTC()

// source is a small tree with all that a release takes from one.
func source(t *testing.T, target target) content {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"LICENSE": "licence", "NOTICE": "notice", "README.md": "read me", "CHANGELOG.md": "changes",
		"deploy/parley-site.service":                        "ExecStart=/usr/local/bin/parley site serve",
		"deploy/parley-coordinator.service":                 "ExecStart=/usr/local/bin/parley coordinator serve",
		"deploy/parley-coordinator.service.d/port-443.conf": "[Service]",
		"deploy/prometheus-alerts.yaml":                     "groups:", "deploy/grafana-dashboard.json": "parley_ready",
		"deploy/Containerfile": "FROM scratch",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		testkit.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return content{root: root, program: []byte("program"), bill: []byte("{}"), target: target, version: "1.2.3-rc1",
		made: made, documents: []entry{
			{name: "man/man1/parley.1", data: []byte(".TH PARLEY 1\n")},
			{name: "completions/parley.bash", data: []byte("complete")},
			{name: "completions/parley.fish", data: []byte("complete")},
			{name: "completions/_parley", data: []byte("#compdef")},
			{name: "completions/parley.ps1", data: []byte("Register")},
		}}
}

// written returns the files that a target's content gives.
func written(t *testing.T, c content) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	testkit.Do(t, c.write(out))
	testkit.Do(t, sums(out))
	files := testkit.Get(folder(out, ""))(t)
	all := map[string][]byte{}
	for _, f := range files {
		all[f.name] = f.data
	}
	return all
}

func TestTwoReleasesHaveTheSameBytes(t *testing.T) {
	for _, target := range targets {
		first := source(t, target)
		second := source(t, target) // other folders, other times of files
		slices.Reverse(second.documents)
		testkit.Do(t, os.Chtimes(filepath.Join(second.root, "LICENSE"), made, made))
		a, b := written(t, first), written(t, second)
		if !maps.EqualFunc(a, b, bytes.Equal) {
			t.Errorf("%s: files differ between two runs", target)
		}
		later := first
		later.made = made.Add(time.Hour)
		if maps.EqualFunc(a, written(t, later), bytes.Equal) {
			t.Errorf("%s: the commit's time does not count", target)
		}
	}
}

func TestFilesOfATarget(t *testing.T) {
	for target, want := range map[target][]string{
		{"linux", "arm64"}: {"SHA256SUMS", "parley-1.2.3-rc1-linux-arm64.cdx.json",
			"parley-1.2.3-rc1-linux-arm64.tar.gz", "parley_1.2.3~rc1_arm64.deb"},
		{"darwin", "arm64"}: {"SHA256SUMS", "parley-1.2.3-rc1-darwin-arm64.cdx.json",
			"parley-1.2.3-rc1-darwin-arm64.tar.gz"},
		{"windows", "amd64"}: {"SHA256SUMS", "parley-1.2.3-rc1-windows-amd64.cdx.json",
			"parley-1.2.3-rc1-windows-amd64.zip"},
	} {
		files := written(t, source(t, target))
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", target, got, want)
		}
		if got := strings.Count(string(files["SHA256SUMS"]), "\n"); got != len(want)-1 {
			t.Errorf("%s: %d sums of %d files", target, got, len(want)-1)
		}
	}
}

// unpack returns the headers and contents of a tar archive packed with gzip.
func unpack(t *testing.T, data []byte) (headers []tar.Header, contents map[string]string) {
	t.Helper()
	packed := testkit.Get(gzip.NewReader(bytes.NewReader(data)))(t)
	contents = map[string]string{}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if err == io.EOF {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		text := testkit.Get(io.ReadAll(r))(t)
		headers = append(headers, *h)
		contents[h.Name] = string(text)
	}
}

func TestArchiveOfLinux(t *testing.T) {
	headers, contents := unpack(t, written(t,
		source(t, target{"linux", "amd64"}))["parley-1.2.3-rc1-linux-amd64.tar.gz"])
	const below = "parley-1.2.3-rc1-linux-amd64/"
	for _, h := range headers {
		want := int64(0o644)
		if h.Typeflag == tar.TypeDir || h.Name == below+"parley" {
			want = 0o755
		}
		if h.Mode != want || !h.ModTime.Equal(made) || h.Uid != 0 || h.Gid != 0 || !strings.HasPrefix(h.Name, below) {
			t.Errorf("%s: mode %o, time %v, owner %d:%d", h.Name, h.Mode, h.ModTime, h.Uid, h.Gid)
		}
	}
	if contents[below+"man/man1/parley.1"] != ".TH PARLEY 1\n" || contents[below+"deploy/parley-site.service"] == "" {
		t.Errorf("archive holds %v", slices.Sorted(maps.Keys(contents)))
	}
}

func TestArchiveOfWindows(t *testing.T) {
	data := written(t, source(t, target{"windows", "amd64"}))["parley-1.2.3-rc1-windows-amd64.zip"]
	r := testkit.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	program := testkit.Get(r.Open("parley-1.2.3-rc1-windows-amd64/parley.exe"))(t)
	defer program.Close()
	if _, err := io.Copy(io.Discard, program); err != nil { // ends with a check of its sum
		t.Error(err)
	}
}

// members returns the members of an ar archive, in order.
func members(t *testing.T, data []byte) (names []string, contents map[string][]byte) {
	t.Helper()
	rest, ok := bytes.CutPrefix(data, []byte("!<arch>\n"))
	if !ok {
		t.Fatal("no ar archive")
	}
	contents = map[string][]byte{}
	for len(rest) > 0 {
		header := string(rest[:60])
		size, err := strconv.Atoi(strings.TrimSpace(header[48:58]))
		if err != nil || header[58:] != "`\n" {
			t.Fatalf("header %q: %v", header, err)
		}
		name := strings.TrimSpace(header[:16])
		names = append(names, name)
		contents[name] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	return names, contents
}

func TestDebianPackage(t *testing.T) {
	c := source(t, target{"linux", "amd64"})
	names, parts := members(t, written(t, c)["parley_1.2.3~rc1_amd64.deb"])
	if want := []string{"debian-binary", "control.tar.gz", "data.tar.gz"}; !slices.Equal(names, want) ||
		string(parts["debian-binary"]) != "2.0\n" {
		t.Fatalf("members %v, want %v", names, want)
	}
	headers, files := unpack(t, parts["data.tar.gz"])
	for _, want := range []string{"usr/bin/parley", "usr/share/man/man1/parley.1.gz",
		"usr/share/bash-completion/completions/parley",
		"usr/share/zsh/vendor-completions/_parley", "usr/share/fish/vendor_completions.d/parley.fish",
		"usr/share/doc/parley/copyright",
		"usr/share/doc/parley/changelog.gz",
		"usr/share/doc/parley/examples/parley-coordinator.service.d/port-443.conf"} {
		if files["./"+want] == "" {
			t.Errorf("%s is missing from %v", want, slices.Sorted(maps.Keys(files)))
		}
	}
	if got := files["./usr/lib/systemd/system/parley-site.service"]; got != "ExecStart=/usr/bin/parley site serve" {
		t.Errorf("the unit says %q", got)
	}
	_, control := unpack(t, parts["control.tar.gz"])
	if got := control["./control"]; !strings.Contains(got, "\nVersion: 1.2.3~rc1\n") ||
		!strings.Contains(got, "\nArchitecture: amd64\n") {
		t.Errorf("control says\n%s", got)
	}
	regular := 0
	for _, h := range headers {
		if h.Typeflag != tar.TypeReg {
			continue
		}
		regular++
		if line := fmt.Sprintf("%x  %s\n", md5.Sum([]byte(files[h.Name])),
			strings.TrimPrefix(h.Name, "./")); !strings.Contains(control["./md5sums"], line) {
			t.Errorf("md5sums lacks %q", line)
		}
	}
	if got := strings.Count(control["./md5sums"], "\n"); got != regular {
		t.Errorf("%d sums of %d files", got, regular)
	}
}

func TestBillListsWhatIsLinked(t *testing.T) {
	binary := testkit.Get(os.Executable())(t)
	data := testkit.Get(bill(binary, "1.2.3", made))(t)
	var d document
	testkit.Do(t, json.Unmarshal(data, &d))
	if d.Format != "CycloneDX" || d.Metadata.Component.URL != "pkg:golang/parley@1.2.3" || d.Metadata.Timestamp !=
		"2023-11-14T22:13:20Z" {
		t.Errorf("%+v", d.Metadata)
	}
	if !slices.ContainsFunc(d.Components, func(c component) bool { return c.Name == "stdlib" && c.Version != "" }) {
		t.Errorf("Go's library is missing from %v", d.Components)
	}
	if got := len(d.Dependencies[0].DependsOn); got != len(d.Components) {
		t.Errorf("%d dependencies, %d components", got, len(d.Components))
	}
	if _, err := bill(filepath.Join("..", "..", "LICENSE"), "1", made); err == nil {
		t.Error("a file that is no program has a bill")
	}
}

func TestTargetsAndTimesThatAreWrong(t *testing.T) {
	if got, err := choose("linux/amd64, windows/amd64"); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := choose("linux/amd64,plan9/386"); err == nil || !strings.Contains(err.Error(), "plan9/386") {
		t.Errorf("%v", err)
	}
	outside := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "")
	if _, _, err := commitOf(outside); err == nil || !strings.Contains(err.Error(), "hint: outside a clone") {
		t.Errorf("%v", err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "today")
	if _, _, err := commitOf(outside); err == nil || !strings.Contains(err.Error(), "today") {
		t.Errorf("%v", err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if name, got, err := commitOf(outside); err != nil || name != "" || !got.Equal(made) {
		t.Errorf("%q, %v, %v", name, got, err)
	}
	full := t.TempDir()
	testkit.Do(t, os.WriteFile(filepath.Join(full, "old"), nil, 0o600))
	if err := release(full, "", nil); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("%v", err)
	}
}
