package federation

import (
	"fmt"
	"sync"
	"time"
)

// Quiet limits what another's malice can write to a log: the same line once a
// minute, and of different ones some at once and then one in ten seconds. The zero
// Quiet is ready.
type Quiet struct {
	mu     sync.Mutex
	told   map[string]time.Time // when a line was last written
	room   float64              // lines that may be written now
	at     time.Time            // when room was counted
	passed int                  // lines that were not written
}

const (
	quietAtOnce = 30
	quietEvery  = 10 * time.Second
	quietSame   = time.Minute
)

// Line returns the line as it is to be written now, if it is.
func (q *Quiet) Line(text string, now time.Time) (line string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	text = Printable(text)
	if q.told == nil {
		q.told, q.room, q.at = map[string]time.Time{}, quietAtOnce, now
	}
	q.room = min(quietAtOnce, q.room+float64(now.Sub(q.at))/float64(quietEvery))
	q.at = now
	if last, told := q.told[text]; told && now.Sub(last) < quietSame || q.room < 1 {
		q.passed++
		return "", false
	}
	q.room--
	if len(q.told) >= 100 {
		clear(q.told)
	}
	q.told[text] = now
	line = text
	if q.passed > 0 {
		line = fmt.Sprintf("%s (and %d times something of the kind before)", text, q.passed)
		q.passed = 0
	}
	return line, true
}
