package federation_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"parley/federation"
	"parley/internal/testkit"
	"parley/problem"
)

func open(t interface{ Fatal(...any) }, path string) *federation.Log {
	l, err := federation.OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func entries(t interface{ Fatal(...any) }, path string) (list []federation.LogEntry) {
	if err := federation.ReadLog(path, func(e federation.LogEntry) error {
		list = append(list, e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// written is the bytes of a log of so many entries.
func written(t interface{ Fatal(...any) }, path string, n int) []byte {
	l := open(t, path)
	for i := range n {
		if err := l.Add("did", "ab12", "north", fmt.Sprintf("entry <%d> & more", i)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEntriesAreReadAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	data := written(t, path, 2)
	testkit.Do(t, open(t, path).Add("approved", "", "", "a\nb\x00\u202e  c\xff"))
	list := entries(t, path)
	if len(list) != 3 || list[0].Previous != "" || list[1].Text != "entry <1> & more" || list[1].Study != "ab12" ||
		list[2].Text != "a b c" || list[2].Seq != 3 {
		t.Errorf("got %+v", list)
	}
	n, head, err := federation.VerifyLog(path)
	if err != nil || n != 3 || len(head) != 64 {
		t.Errorf("%d, %q, %v", n, head, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if !bytes.HasPrefix(data, []byte(`{"seq":1,"at":"`)) {
		t.Errorf("begins with %.40s", data)
	}
	if _, err := os.Stat(path + ".lock"); err == nil && runtime.GOOS != "windows" {
		t.Error("the lock is left behind")
	}
	testkit.Do(t, os.Truncate(path, 10))
	if n, _, err := federation.VerifyLog(path); n != 0 || err != nil { // a cut tail is a shorter log
		t.Errorf("%d, %v", n, err)
	}
}

// Text of any kind becomes one printable line of bounded length.
func TestTextIsOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 3000),
			func(b []byte) string { return string(b) }),
			rapid.Just(strings.Repeat("\U0001f9ea", 3000))).Draw(t, "text")
		testkit.Do(t, l.Add(text, text, text, text))
	})
	for _, e := range entries(t, path) {
		if utf8.RuneCountInString(e.Text) > 1000 ||
			strings.ContainsFunc(e.Text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", e.Text)
		}
	}
}

// Whatever is done to lines before the last is noticed; the end shows only in
// the head.
func TestChangesAreNoticed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	data := written(t, path, 8)
	_, head, err := federation.VerifyLog(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(bytes.Lines(data))
	other := slices.Collect(bytes.Lines(written(t, filepath.Join(dir, "other.jsonl"), 9)[:]))
	rapid.Check(t, func(t *rapid.T) {
		changed := slices.Clone(lines)
		i := rapid.IntRange(0, len(lines)-2).Draw(t, "line")
		switch rapid.SampledFrom([]string{"alter", "delete", "insert", "move", "replace"}).Draw(t, "how") {
		case "alter":
			b := bytes.Clone(changed[i])
			b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
			changed[i] = b
		case "delete":
			changed = slices.Delete(changed, i, i+1)
		case "insert":
			changed = slices.Insert(changed, i, rapid.SampledFrom(other).Draw(t, "other"))
		case "move":
			j := rapid.IntRange(i+1, len(lines)-1).Draw(t, "with")
			changed[i], changed[j] = changed[j], changed[i]
		case "replace":
			changed[i] = bytes.Replace(changed[i], []byte("more"), []byte("less"), 1)
		}
		path := filepath.Join(dir, "changed.jsonl")
		testkit.Do(t, os.WriteFile(path, bytes.Join(changed, nil), 0o600))
		_, _, err := federation.VerifyLog(path)
		p := problem.Problem{}
		if !errors.As(err, &p) || p.Line == 0 || p.Hint == "" {
			t.Fatalf("not noticed: %v", err)
		}
		if _, err := federation.OpenLog(path); !errors.As(err, &p) {
			t.Fatalf("opened: %v", err)
		}
	})
	cut := filepath.Join(dir, "cut.jsonl")
	testkit.Do(t, os.WriteFile(cut, bytes.Join(lines[:5], nil), 0o600))
	if n, other, err := federation.VerifyLog(cut); n != 5 || other == head || err != nil {
		t.Errorf("a cut tail: %d, %v", n, err)
	}
}

// A log that was opened notices that it was cut or changed behind it.
func TestShorterLogIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	data := written(t, path, 3)
	l := open(t, path)
	testkit.Do(t, os.WriteFile(path, data[:len(data)/2], 0o600))
	if err := l.Add("did", "", "", "more"); err == nil ||
		!strings.Contains(err.Error(), "shorter than it was: it had 3 lines") {
		t.Errorf("got %v", err)
	}
	testkit.Do(t, os.Remove(path))
	if err := l.Add("did", "", "", "more"); err == nil {
		t.Error("a log that is gone was begun again")
	}
}

// A crash at any byte of an append leaves a log that goes on.
func TestCrashAtAnyByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	data := written(t, path, 3)
	lines := slices.Collect(bytes.Lines(data))
	before := len(lines[0]) + len(lines[1])
	for at := before; at <= len(data); at++ {
		testkit.Do(t, os.WriteFile(path, data[:at], 0o600))
		if err := open(t, path).Add("did", "", "", "after the crash"); err != nil {
			t.Fatalf("cut at %d of %d: %v", at, len(data), err)
		}
		list := entries(t, path)
		if last := list[len(list)-1]; len(list) < 3 || last.Text != "after the crash" {
			t.Fatalf("cut at %d: %+v", at, list)
		}
		if cut := at > before && at < len(data)-1; cut != (list[2].What == "repaired") || list[1].Seq != 2 {
			t.Fatalf("cut at %d: the third entry is %+v", at, list[2])
		}
	}
}

// A crash of another process is mended by whoever adds next.
func TestAnothersCrashIsMended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	data := written(t, path, 1)
	l := open(t, path)
	// shorter than what is said of it, and longer
	for i, torn := range []string{`{"seq":2,`, strings.Repeat("\x00", 20<<10)} {
		testkit.Do(t, os.WriteFile(path, append(data, torn...), 0o600))
		testkit.Do(t, l.Add("did", "", "", "more"))
		if list := entries(t, path); len(list) != 3+2*i || list[1+2*i].What != "repaired" {
			t.Errorf("got %+v", list)
		}
		var err error
		if data, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Several processes, with several goroutines each, keep one chain.
func TestManyWritersKeepOneChain(t *testing.T) {
	path := os.Getenv("PARLEY_AUDITLOG")
	child := path != ""
	if !child {
		path = filepath.Join(t.TempDir(), "audit.jsonl")
	}
	shared := open(t, path)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			l := shared
			if i%2 == 0 {
				l = open(t, path)
			}
			for range 10 {
				if err := l.Add("did", "", "", fmt.Sprint(os.Getpid())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if child {
		wg.Wait()
		return
	}
	for range 2 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestManyWritersKeepOneChain$")
			cmd.Env = append(os.Environ(), "PARLEY_AUDITLOG="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if n, _, err := federation.VerifyLog(path); n != 120 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
}

// Nothing that is read crashes the reader, and what is read without an error is
// what this program would have written.
func FuzzRead(f *testing.F) {
	data := written(f, filepath.Join(f.TempDir(), "audit.jsonl"), 2)
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Add(bytes.Replace(data, []byte(`"seq"`), []byte(`"SEQ"`), 1))
	f.Add([]byte("{\"seq\":1,\"at\":\"2026-01-01T00:00:00+00:00\",\"what\":\"\",\"text\":\"\",\"previous\":\"\"}\n"))
	path := filepath.Join(f.TempDir(), "read.jsonl")
	f.Fuzz(func(t *testing.T, b []byte) {
		testkit.Do(t, os.WriteFile(path, b, 0o600))
		n, _, err := federation.VerifyLog(path)
		p := problem.Problem{}
		if err != nil {
			if !errors.As(err, &p) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if whole := bytes.Count(b, []byte("\n")); n != whole {
			t.Fatalf("%d entries of %d lines", n, whole)
		}
		l, err := federation.OpenLog(path)
		if err != nil {
			return // a last line that is whole and wrong
		}
		testkit.Do(t, l.Add("did", "", "", "more"))
		if m, _, err := federation.VerifyLog(path); err != nil || m <= n {
			t.Fatalf("%d entries after %d, %v", m, n, err)
		}
	})
}
