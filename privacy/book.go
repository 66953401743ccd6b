package privacy

import "parley/privacy/account"

// book is what a gate knows of the ledger. It reads every line once.
type book struct {
	study     string
	lines     int
	attempts  map[string]int         // charges of each release of the study
	kinds     map[string]int         // releases of the study that were charged, by the kind of their task
	round     int                    // the last one that was charged for the study
	charged   map[string]Charge      // of each release of the study, the last one
	ours      map[Unit]account.Tally // charges of the study, for each unit
	boundless map[Unit]bool          // the study has charged what has no bound for the unit
	all       account.Tally          // charges of all studies, for single subjects
	masked    int                    // the last round of the study with a masked release
	opened    map[int]string         // the release that opens a round's sum
	set       string                 // whose masks the study's first opening took away
}

func newBook(study string) *book {
	return &book{study: study, attempts: map[string]int{}, kinds: map[string]int{}, charged: map[string]Charge{},
		ours: map[Unit]account.Tally{}, boundless: map[Unit]bool{}, opened: map[int]string{}}
}

// read takes in the lines that have been added.
func (b *book) read(j Journal) error {
	lines, err := j.Reservations(b.lines)
	if err != nil {
		return err
	}
	for _, line := range lines {
		c, err := ReadCharge(line)
		if err != nil {
			return err
		}
		if line.Study == b.study {
			if b.attempts[line.Release]++; b.attempts[line.Release] == 1 {
				b.kinds[c.Kind]++
			}
			b.round = max(b.round, c.Round)
			b.charged[line.Release] = c
			if c.Masked {
				b.masked = max(b.masked, c.Round)
			}
			if c.Request.Opens > 0 {
				b.opened[c.Opens] = line.Release
				if b.set == "" {
					b.set = c.Set
				}
			}
		}
		b.add(line.Study == b.study, c.Request)
		b.lines = line.Seq
	}
	return nil
}

// add counts a request, ours or of another study.
func (b *book) add(ours bool, r Request) {
	for _, unit := range []Unit{Subject, WholeSite} {
		ms, err := r.Mechanisms(unit)
		switch {
		case err != nil && ours:
			b.boundless[unit] = true
		case err != nil: // what was released without a bound is not what a filter limits
		default:
			if ours {
				b.ours[unit] = b.ours[unit].With(1, ms...)
			}
			if unit == Subject {
				b.all = b.all.With(1, ms...)
			}
		}
	}
}
