package coordinator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/engine/wire"
	"parley/federation"
	encoding "parley/internal/wire"
)

// member is a site as the daemon sees it.
type member struct {
	daemon *Daemon
	site   string
	took   atomic.Int64 // nanoseconds until its last answer had come

	mu      sync.Mutex
	joined  *Member // nil if it has not
	peer    wire.Peer
	hello   federation.Hello
	current bool              // the hello is of this life of the coordinator
	lives   map[string]uint64 // of the site's processes: the count of the last hello of each
	seen    time.Time         // of the last hello, by this machine's clock
	words   map[string]standing
	news    notice
	lived   // which of its processes serves

	// Of whoever posts alone: the study whose results are on the board, and since when.
	handing  string
	handedAt time.Time

	credentials string // for a broker that is somebody else's
	renewed     time.Time
	quiet       federation.Quiet // what is written to the logs because of the site
}

// standing is where the site stands with a study, and since when it has been seen to.
type standing struct {
	federation.Standing
	since time.Time
}

// member returns that of a site, whom it begins to listen to.
func (d *Daemon) member(ctx context.Context, site string) *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.members[site]
	if m == nil {
		m = &member{daemon: d, site: site, words: map[string]standing{}}
		d.members[site] = m
		d.goOn(ctx, m.listen)
		d.goOn(ctx, m.post)
	}
	return m
}

// update takes in what the registry says of the site.
func (m *member) update(j Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.joined != nil && m.joined.Serial == j.Serial && m.joined.Revoked == j.Revoked {
		return
	}
	peer, err := wire.ParsePeer(j.Peer)
	if err != nil {
		m.daemon.Log.Error(fmt.Sprintf("the key of site %s in %s: %v", m.site, registryFile, err))
		return
	}
	if m.joined == nil || m.joined.Serial != j.Serial {
		m.current, m.hello = false, federation.Hello{}
		m.words = map[string]standing{}
		m.begin(j.Life)
	}
	m.joined, m.peer = &j, peer
	m.news.give()
}

// state is what is known of the site.
func (m *member) state() (joined Member, peer wire.Peer, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.joined == nil || m.joined.Revoked {
		return Member{}, wire.Peer{}, false
	}
	joined = *m.joined
	joined.Life = m.life
	return joined, m.peer, true
}

// listen takes in what the site says.
func (m *member) listen(ctx context.Context) {
	var seen uint64
	m.daemon.conn.Limit(federation.HelloKey(m.site), envelope)
	for ctx.Err() == nil {
		until, cancel := m.patience(ctx)
		value, revision, err := m.daemon.conn.Wait(until, federation.HelloKey(m.site), seen)
		passed := until.Err() != nil
		cancel()
		if passed {
			m.giveWay()
			continue
		}
		if err != nil {
			wire.Pause(ctx, time.Second)
			continue
		}
		seen = revision
		if err := wire.Apart(func() error { return m.take(value) }); err != nil {
			m.passedOver("", "what stood for a hello was passed over: "+err.Error())
		}
		m.giveWay()
	}
}

// take takes in a hello.
func (m *member) take(value []byte) error {
	d := m.daemon
	h, c, err := federation.OpenHello(d.Folder.Secrets.Key, m.site, value)
	if err != nil {
		return err
	}
	joined, err := d.introduce(c)
	if err != nil {
		return err
	}
	m.update(joined)
	m.mu.Lock()
	defer m.mu.Unlock()
	fresh := bytes.Equal(h.Nonce, d.nonce)
	if fresh && !m.advances(string(h.Life), h.Count) || !fresh && m.current {
		return nil // delivered again, or from before this life of the coordinator
	}
	if fresh && !m.serves(&h) {
		return nil
	}
	m.hear(h, fresh)
	return nil
}

// hear takes in what a site says; the caller holds m.mu.
func (m *member) hear(h federation.Hello, fresh bool) {
	d, now := m.daemon, time.Now()
	m.seen = now
	first := m.hello.Program.Version == ""
	m.hello, m.current = h, fresh
	if first {
		d.Log.Info(fmt.Sprintf("site %s is here (parley %s, %s)", m.site, h.Program.Version, h.Program.Platform),
			"site", m.site)
	}
	if fresh {
		words := map[string]standing{}
		for _, s := range h.Studies {
			old, ok := m.words[s.Study]
			if !ok || old.Word != s.Word || old.Text != s.Text {
				old = standing{s, now}
				if line, ok := m.quiet.Line(fmt.Sprintf("site %s, study %.12s: %s", m.site, s.Study, sentence(s)),
					now); ok {
					d.Log.Info(line, "site", m.site, "study", s.Study, "word", s.Word)
				}
			}
			words[s.Study] = old
		}
		m.words = words
	}
	m.news.give()
}

// maxLives is how many processes of a site are told apart in one life of the
// coordinator.
const maxLives = 10000

// envelope is how many bytes a hello or a request to join has at most, and an answer beside what was asked for.
const envelope = 1 << 20

// advances says whether a hello is later than every one before it of the same process; the
// caller holds m.mu. Processes have no order: what an earlier one said, and the coordinator
// missed, is believed when somebody says it again, until the next hello of the present one.
func (m *member) advances(life string, count uint64) bool {
	if last, known := m.lives[life]; known && count <= last {
		return false
	}
	if m.lives == nil || len(m.lives) >= maxLives {
		m.lives = map[string]uint64{}
	}
	m.lives[life] = count
	return true
}

func sentence(s federation.Standing) string {
	if s.Text != "" {
		return s.Word + ": " + s.Text
	}
	return s.Word
}

// introduce returns what is kept of the site that a certificate names, or keeps it:
// a coordinator that has lost its folder knows its sites again by their certificates.
func (d *Daemon) introduce(c federation.Certificate) (joined Member, err error) {
	r, err := d.Folder.Registry()
	if err != nil {
		return joined, err
	}
	if m := r.member(c.Site); m != nil && m.Serial == c.Serial {
		if m.Revoked {
			return joined, fmt.Errorf("its keys have been revoked")
		}
		return *m, d.settle(c.User, r)
	}
	err = d.Folder.change(func(r *Registry, s *Secrets) error {
		m := r.member(c.Site)
		if s.revoked(c.Site, c.Serial) || m != nil && m.Serial > c.Serial {
			return fmt.Errorf("its keys have been revoked, or replaced")
		}
		joined, err = r.keep(c)
		return err
	})
	if err == nil {
		err = d.Folder.Audit.Add("known again", "", c.Site, "by the certificate that this coordinator has given it")
	}
	return joined, err
}

// keep makes the site of a certificate a member, in place of the one before.
func (r *Registry) keep(c federation.Certificate) (m Member, err error) {
	m = Member{Site: c.Site, Serial: c.Serial, User: c.User, Peer: c.Peer,
		Joined: time.Now().UTC().Truncate(time.Second)}
	m.Certificate, err = c.Encode()
	if old := r.member(c.Site); old != nil {
		*old = m
	} else {
		r.Members = append(r.Members, m)
	}
	return m, err
}

// settle withdraws the key of the invitation by which a site has joined, now that
// it connects with its own.
func (d *Daemon) settle(user string, r Registry) error {
	open := func(i Invited) bool { return i.UsedBy == user && !i.Settled }
	if !slices.ContainsFunc(r.Invitations, open) {
		return nil
	}
	return d.Folder.change(func(r *Registry, _ *Secrets) error {
		for i := range r.Invitations {
			if open(r.Invitations[i]) {
				r.Invitations[i].Settled = true
			}
		}
		return nil
	})
}

// post keeps the site's board as it should be.
func (m *member) post(ctx context.Context) {
	d := m.daemon
	var p posting
	at := time.Now() // of the last look whether the board still stands
	for ctx.Err() == nil {
		changed, news := m.news.changed(), d.news.changed()
		err := wire.Apart(func() error { return m.putBoard(ctx, &p) })
		wait := d.Again
		if m.wants() != "" {
			wait = min(wait, handedEvery)
		} else if m.knows() {
			wait *= 10
		}
		if err != nil {
			if ctx.Err() == nil {
				m.passedOver("", "its board could not be put, and is tried again: "+err.Error())
			}
			p.sum, wait = nil, time.Second
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-news:
		case <-time.After(wait):
			_, revision, err := d.conn.Get(ctx, federation.BoardKey(m.site))
			if err == nil && revision != p.revision || m.unaware(at) {
				p.sum = nil // it is lost or another's, or what the site has seen before had its number
			}
			at = time.Now()
		}
	}
}

// posting is the board that was put last: its digest without plans and the count, which is nil if it is to be put
// again, the studies whose plans are on it, its count, and its revision at the broker.
type posting struct {
	sum             []byte
	plans           map[string]bool
	count, revision uint64
}

// unaware says whether the site has said something since, and has not seen the board of this life of the
// coordinator. A broker that is lost, or comes back older, counts values anew: a site that waits for another number
// than it has seen may wait for one that it takes for the same.
func (m *member) unaware(since time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.current && m.seen.After(since)
}

// putBoard puts the board if it is not what was posted.
func (m *member) putBoard(ctx context.Context, p *posting) error {
	d := m.daemon
	joined, peer, ok := m.state()
	if !ok {
		return nil
	}
	if m.wants() != "" {
		select {
		case d.handing <- struct{}{}:
			defer func() { <-d.handing }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	board, err := m.board(joined)
	if err != nil {
		return err
	}
	// A plan that the site has kept since may stay on the board.
	bare, lacks := board, false
	bare.Studies = slices.Clone(board.Studies)
	for i, s := range board.Studies {
		lacks = lacks || len(s.Plan) > 0 && !p.plans[s.Study]
		bare.Studies[i].Plan = nil
	}
	data, err := encoding.Marshal(bare)
	if err != nil {
		return err
	}
	key, sum := federation.BoardKey(m.site), sha256.Sum256(append(data, joined.User...))
	if bytes.Equal(sum[:], p.sum) && !lacks {
		return nil
	}
	p.count++
	board.Count = p.count
	value, err := federation.Post(d.Folder.Secrets.Key, peer, m.site, board)
	if err == nil {
		_, err = federation.Replace(ctx, d.conn, key, value, &p.revision)
	}
	if err == nil {
		p.sum, p.plans = sum[:], map[string]bool{}
		for _, s := range board.Studies {
			p.plans[s.Study] = len(s.Plan) > 0
		}
	}
	return err
}

// knows says whether the site has seen the board of this life of the coordinator, and is one process.
func (m *member) knows() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current && m.second == nil
}

// wants is a study for whose results the site asks; empty if there is none.
func (m *member) wants() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.hello.Wants) == 0 || !m.current {
		m.handing = ""
		return ""
	}
	return m.hello.Wants[0]
}

// board is what the site is to see.
func (m *member) board(joined Member) (b federation.Board, err error) {
	d := m.daemon
	b = federation.Board{Program: d.program, Nonce: d.nonce}
	m.mu.Lock()
	hello, words := m.hello, maps.Clone(m.words)
	if hello.Program.Protocol == b.Program.Protocol { // others could not read it
		b.Ask, b.Second = m.asks, m.other()
	}
	if d.server == nil && time.Since(m.renewed) > foreignCredentials/4 {
		if m.credentials, err = d.credentials(m.site, joined.User); err == nil {
			m.renewed = time.Now()
		}
	}
	b.JWT = m.credentials
	m.mu.Unlock()
	if err != nil {
		return b, err
	}
	for _, s := range d.running() {
		plan, stopped, ok := s.posted(m.site)
		if !ok {
			continue
		}
		p := federation.Posted{Study: s.digest, Stopped: stopped}
		word, has := words[s.digest]
		if !has || word.Word == federation.Unable { // who may not have kept it
			p.Plan = plan
		}
		if hello.Program.Version != "" {
			p.Needs = s.needs(hello.Program)
		}
		b.Studies = append(b.Studies, p)
	}
	if want := m.wants(); want != "" && (want == m.handing || time.Since(m.handedAt) > handedEvery) {
		if want != m.handing {
			m.handing, m.handedAt = want, time.Now()
			if err := d.Folder.Audit.Add("handed", want, m.site, "results for which it asks"); err != nil {
				return b, err
			}
		}
		b.Handed = d.handed(want, m.site)
	}
	return b, nil
}

// guest waits for somebody to use an invitation.
func (d *Daemon) guest(ctx context.Context, i Invited) {
	peer, err := wire.ParsePeer(i.Peer)
	if err != nil {
		d.Log.Error(fmt.Sprintf("invitation %s in %s: %v", i.ID, registryFile, err))
		return
	}
	ctx, cancel := context.WithDeadline(ctx, i.Expires)
	defer cancel()
	var seen uint64
	d.conn.Limit(federation.RequestKey(i.ID), envelope)
	var quiet federation.Quiet
	for ctx.Err() == nil {
		value, revision, err := d.conn.Wait(ctx, federation.RequestKey(i.ID), seen)
		if err != nil {
			wire.Pause(ctx, time.Second)
			continue
		}
		seen = revision
		r, err := federation.OpenRequest(d.Folder.Secrets.Key, peer, i.ID, value)
		if err != nil {
			if line, ok := quiet.Line("what stood for a request to join: "+err.Error(), time.Now()); ok {
				d.audit("passed over", "", i.Site, line)
			}
			continue
		}
		if err := d.grant(ctx, i, r, &quiet); err != nil && ctx.Err() == nil {
			d.Log.Warn(fmt.Sprintf("answering the request of site %s to join: %v", i.Site, err))
			seen = 0
			wire.Pause(ctx, time.Second)
		}
	}
}

// grant answers a request to join.
func (d *Daemon) grant(ctx context.Context, i Invited, r federation.Request, quiet *federation.Quiet) error {
	g, err := d.join(i, r, quiet)
	if err != nil {
		return err
	}
	to, err := wire.ParsePeer(r.Peer)
	if err != nil {
		return err
	}
	value, err := federation.SealGrant(d.Folder.Secrets.Key, to, i.ID, g)
	if err != nil {
		return err
	}
	return federation.Put(ctx, d.conn, federation.GrantKey(i.ID), value)
}

// join makes somebody with an invitation the site. The same request has the same
// answer, since the first may have been lost.
func (d *Daemon) join(i Invited, r federation.Request, quiet *federation.Quiet) (g federation.Grant, err error) {
	if own := d.program; own.Protocol != r.Program.Protocol {
		g.Refused = fmt.Sprintf("install parley %s: this coordinator speaks version %d of the protocol, and parley %s "+
			"speaks version %d", own.Version, own.Protocol, wire.Words(r.Program.Version), r.Program.Protocol)
		return g, nil
	}
	// Before anything is kept: a key that cannot be one could not be revoked later.
	token, err := d.credentials(i.Site, r.User)
	if err != nil {
		g.Refused = "the request names no key to connect with"
		return g, nil
	}
	fresh := false
	err = d.Folder.change(func(reg *Registry, s *Secrets) error {
		at := slices.IndexFunc(reg.Invitations, func(x Invited) bool { return x.ID == i.ID })
		m := reg.member(i.Site)
		switch {
		case at < 0:
			g.Refused = "the invitation has been withdrawn"
			return nil
		case reg.other(i.Site, r.User): // with this site, another's key would be revoked
			g.Refused = "the request names the key of somebody else"
			return nil
		case reg.Invitations[at].UsedBy == r.User && m != nil && m.User == r.User && bytes.Equal(m.Peer, r.Peer):
			g.Certificate = m.Certificate
			return nil
		case reg.Invitations[at].UsedBy != "":
			g.Refused = "the invitation has been used: it works once. If it was not you, tell the coordinator's " +
				"people at once"
			return nil
		case time.Now().After(i.Expires):
			g.Refused = "the invitation has expired"
			return nil
		case m != nil && !m.Revoked && !i.Replaces:
			g.Refused = "another invitation for site " + i.Site + " has been used since"
			return nil
		}
		c := federation.Certificate{Site: i.Site, Serial: uint64(time.Now().UnixNano()), Peer: r.Peer, User: r.User}
		if m != nil {
			c.Serial = max(c.Serial, m.Serial+1)
			if !m.Revoked {
				s.revoke(m)
			}
		}
		if err := c.Issue(s.Key); err != nil {
			return err
		}
		joined, err := reg.keep(c)
		g.Certificate, reg.Invitations[at].UsedBy, fresh = joined.Certificate, r.User, true
		return err
	})
	if err != nil || g.Refused != "" {
		if g.Refused != "" {
			if line, ok := quiet.Line("a request to join: "+g.Refused, time.Now()); ok {
				d.audit("refused", "", i.Site, line)
			}
		}
		return g, err
	}
	g.JWT = token
	if fresh {
		d.Log.Info("site "+i.Site+" has joined", "site", i.Site)
		err = d.Folder.Audit.Add("joined", "", i.Site, "with invitation "+i.ID)
	}
	return g, err
}

// ForeignDays is how long a site's credentials last at a broker that cannot be told
// of revocations. They are renewed on its board.
const (
	foreignCredentials = ForeignDays * 24 * time.Hour
	ForeignDays        = 14
)

// credentials are what a site connects with.
func (d *Daemon) credentials(site, user string) (string, error) {
	var expires time.Time
	if d.server == nil {
		expires = time.Now().Add(foreignCredentials)
	}
	return d.Folder.Secrets.Authority.Site(site, user, expires)
}

// passedOver notes what has no effect, and does so no more often than the site's
// malice should cost disk.
func (m *member) passedOver(study, text string) {
	if line, ok := m.quiet.Line(text, time.Now()); ok {
		m.daemon.audit("noted", study, m.site, line)
	}
}

// audit notes what has no effect, but should be known.
func (d *Daemon) audit(what, study, site, text string) {
	d.Log.Warn(strings.TrimPrefix(fmt.Sprintf("site %s: %s: %s", site, what, text), "site : "), "site", site, "study",
		study)
	d.once.Say(d.Log, "writing the audit log", d.Folder.Audit.Add(what, study, site, text))
}
