package judge_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/testkit"
	"parley/judge"
)

type number int

func (n number) String() string { return fmt.Sprintf("trial %d", int(n)) }
func (n number) Key() string    { return fmt.Sprintf("n-%d", int(n)) }

type settings struct{ Base int }

func (s *settings) Differs(old *settings) string {
	if s.Base == old.Base {
		return ""
	}
	return fmt.Sprintf("base %d, not %d", old.Base, s.Base)
}

type outcome struct{ Square int }

// in is work in a folder.
func in(dir string, workers int, progress func(judge.Progress)) judge.Work {
	return judge.Work{Dir: dir, Folder: "outcomes", Kind: "table of squares", Workers: workers, Progress: progress}
}

// done conducts a trial that shows nothing.
func done(context.Context, number) (*outcome, error) { return &outcome{}, nil }

// However often and wherever the work is stopped, every trial is computed once.
func TestWorkGoesOnWhereItWas(t *testing.T) {
	const n = 20
	var all []number
	for i := range n {
		all = append(all, number(i))
	}
	dir := filepath.Join(t.TempDir(), "work")
	var computed [n]atomic.Int32
	stop := errors.New("enough")
	for round := 0; ; round++ {
		var left atomic.Int32
		left.Store(7)
		first := true
		progress := func(p judge.Progress) {
			if first && (p.Done != p.Stored || p.Of != n || p.Stored != 7*round) {
				t.Errorf("round %d begins with %+v", round, p)
			}
			first = false
		}
		kept, err := judge.Complete(t.Context(), in(dir, 1+round%3, progress), &settings{10}, all,
			func(_ context.Context, x number) (*outcome, error) {
				if left.Add(-1) < 0 {
					return nil, stop
				}
				computed[x].Add(1)
				return &outcome{int(x) * int(x)}, nil
			})
		if err == nil {
			if round != 2 { // 7, 14 and 20
				t.Errorf("done in round %d", round)
			}
			for i := range computed {
				r, err := kept.Get(number(i).Key())
				if err != nil || r.Square != i*i || computed[i].Load() != 1 {
					t.Errorf("trial %d: %+v, %v, computed %d times", i, r, err, computed[i].Load())
				}
			}
			return
		}
		if !errors.Is(err, stop) || !strings.HasPrefix(err.Error(), "trial ") {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

func TestPeopleStopTheWork(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	computed := 0
	_, err := judge.Complete(ctx, in(filepath.Join(t.TempDir(), "w"), 1, nil), &settings{10}, []number{1, 2, 3},
		func(context.Context, number) (*outcome, error) {
			computed++
			cancel()
			return &outcome{}, nil
		})
	if !errors.Is(err, context.Canceled) || computed != 1 {
		t.Errorf("got %v after %d", err, computed)
	}
}

func TestWhatIsNotOursIsRefused(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	testkit.Get(judge.Complete(t.Context(), in(work, 1, nil), &settings{10}, nil, done))(t)
	write := func(path, text string) {
		t.Helper()
		testkit.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write(filepath.Join(dir, "other", "letter.txt"), "Dear")
	write(filepath.Join(dir, "broken", "settings.json"), "{")
	for _, c := range []struct {
		dir, want string
		base      int
	}{
		{work, "holds another table of squares: base 10, not 11\n  hint: choose another directory", 11},
		{filepath.Join(dir, "other"), "not empty and holds no table of squares", 10},
		{filepath.Join(dir, "broken"), "these are no settings of this kind", 10},
	} {
		if _, err := judge.Complete(t.Context(), in(c.dir, 1, nil), &settings{c.base}, nil, done); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.dir, err)
		}
	}
	write(filepath.Join(work, "outcomes", "n-1.json"), "{")
	_, err := judge.Complete(t.Context(), in(work, 1, nil), &settings{10}, []number{1}, done)
	if err == nil || !strings.Contains(err.Error(), "remove the file, and it is computed again") {
		t.Errorf("a broken outcome: got %v", err)
	}
}
