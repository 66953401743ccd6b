package coordinator

import (
	"testing"
	"time"

	"parley/engine/nats"
)

// A key is refused for what no site does, each time twice as long, and never for what a large study takes.
func TestTakingTooMuch(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	second := func(t *taken, u nats.Usage) bool { now = now.Add(time.Second); return t.takes(u, now, time.Second) }
	var honest taken
	for range 100 {
		if second(&honest, nats.Usage{Connections: 2, Messages: 4_500, Bytes: 64 << 19}) {
			t.Fatalf("refused: %s", honest.text)
		}
	}
	for _, u := range []nats.Usage{{Connections: 17}, {Closed: 200}, {Connections: 1, Messages: 30_000},
		{Connections: 3, Bytes: 300 << 20}} {
		var k taken
		for turn, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
			for seconds := 0; !second(&k, u); seconds++ {
				if seconds > 2 {
					t.Fatalf("%+v is not refused", u)
				}
			}
			if got := k.until.Sub(now); got != want || k.text == "" {
				t.Errorf("%+v, turn %d: refused for %v because of %q, not for %v", u, turn, got, k.text, want)
			}
			now = k.until
			k.until = time.Time{}
		}
	}
}
