package masks

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// Member is a site with its public keys, as all sites have approved them.
type Member struct {
	Name   string
	Verify ed25519.PublicKey // of what the site signs
	Open   *ecdh.PublicKey   // X25519, of masks: used where the site is an opener
}

const memberBytes = ed25519.PublicKeySize + 32

// Text is the two keys in hexadecimal, as a plan names them.
func (m Member) Text() string {
	return hex.EncodeToString(slices.Concat(m.Verify, m.Open.Bytes()))
}

// Fingerprint is a short name of the keys, for comparing by telephone.
func (m Member) Fingerprint() string {
	sum := sha256.Sum256([]byte("parley keys of a site/" + m.Text()))
	return hex.EncodeToString(sum[:8])
}

// ParseMember reads what [Member.Text] wrote.
func ParseMember(name, text string) (Member, error) {
	b, err := hex.DecodeString(text)
	if err == nil && len(b) != memberBytes {
		err = fmt.Errorf("it has %d bytes, not %d", len(b), memberBytes)
	}
	if err != nil {
		return Member{}, fmt.Errorf("the keys of site %s: %w", name, err)
	}
	open, err := publicKey(b[ed25519.PublicKeySize:])
	if err != nil {
		return Member{}, fmt.Errorf("the keys of site %s: %w", name, err)
	}
	return Member{name, b[:ed25519.PublicKeySize], open}, nil
}

// Keys are a site's own.
type Keys struct {
	Sign ed25519.PrivateKey
	Open *ecdh.PrivateKey
}

// Member is the public half.
func (k Keys) Member(name string) Member {
	return Member{name, k.Sign.Public().(ed25519.PublicKey), k.Open.PublicKey()}
}

// Simulated are the keys of a site in a simulation, which anybody can work out: they protect nobody.
func Simulated(study, site string) (Keys, error) {
	seed := func(what string) []byte {
		b := sha256.Sum256(fmt.Appendf(nil, "parley simulated keys 1/%s/%q/%q", what, study, site))
		return b[:]
	}
	open, err := ecdh.X25519().NewPrivateKey(seed("open"))
	return Keys{ed25519.NewKeyFromSeed(seed("sign")), open}, err
}

// Sum names one sum: what all its sites are asked alike. Every mask and signature depends on all of it.
type Sum struct {
	Study string   `cbor:"study"` // digest of the plan, which names sites, keys, openers and quorum
	Round int      `cbor:"round"`
	Task  [32]byte `cbor:"task"` // digest of the task without the site's name, with the head of the history
	Shape Shape    `cbor:"shape"`
}

// Same says whether both name the same sum.
func (s Sum) Same(other Sum) bool { return string(s.label()) == string(other.label()) }

func (s Sum) label() []byte {
	b := fmt.Appendf(nil, "parley secure sum 1/%q/%d/%x", s.Study, s.Round, s.Task)
	for _, block := range s.Shape {
		b = fmt.Appendf(b, "/%d*%d", block.Numbers, block.Words)
	}
	return b
}

// Signed vouches for one site's masked vector.
type Signed struct {
	Site      int      `cbor:"site"`   // among the members
	Key       []byte   `cbor:"key"`    // X25519, of this vector alone
	Digest    [32]byte `cbor:"digest"` // of the masked vector
	Signature []byte   `cbor:"signature"`
}

func (s Signed) statement(sum Sum) []byte {
	return fmt.Appendf(nil, "parley masked 1\x00%s/%d/%x/%x", sum.label(), s.Site, s.Key, s.Digest)
}

// errRefused is why an opener does not answer: none of it depends on the site's rows.
var errRefused = errors.New("the sum is not opened")

func refuse(format string, a ...any) error {
	return fmt.Errorf("%w: %s", errRefused, fmt.Sprintf(format, a...))
}

// Group is what all sites know alike.
type Group struct {
	Members []Member // of all the plan's sites, in its order
	Openers []int    // among them
	Spares  []int    // of whom one may take the place of one opener
	Quorum  int      // sites without which no total is opened
}

// probe is any secret: all give the same with a point of low order.
var probe = func() *ecdh.PrivateKey {
	k, err := ecdh.X25519().NewPrivateKey(make([]byte, 32))
	if err != nil {
		panic(err) // 32 bytes are one
	}
	return k
}()

// publicKey reads a key of X25519, which a point of low order is not.
func publicKey(b []byte) (*ecdh.PublicKey, error) {
	k, err := ecdh.X25519().NewPublicKey(b)
	if err == nil {
		_, err = probe.ECDH(k)
	}
	return k, err
}

// Verify reports a vector for which none of the members has vouched in this sum.
func (g *Group) Verify(sum Sum, s Signed) error {
	if s.Site < 0 || s.Site >= len(g.Members) {
		return refuse("there is no site %d", s.Site+1)
	}
	m := g.Members[s.Site]
	if _, err := publicKey(s.Key); err != nil { // openers would refuse the whole sum for it
		return refuse("site %s: its one-time key: %v", m.Name, err)
	}
	if !ed25519.Verify(m.Verify, s.statement(sum), s.Signature) {
		return refuse("site %s has not signed what is said to be its part of this sum", m.Name)
	}
	return nil
}

// With is the group as its totals are opened by these members: the plan's openers, or one spare in the place of one.
func (g Group) With(openers []int) (Group, error) {
	differ := 0
	for i, o := range openers {
		switch {
		case i >= len(g.Openers):
		case o == g.Openers[i]:
		case slices.Contains(g.Spares, o):
			differ++
		default:
			differ = len(g.Members)
		}
	}
	if len(openers) != len(g.Openers) || differ > 1 {
		return g, errors.New("the plan's totals are opened by others")
	}
	g.Openers = openers
	return g, nil
}

// CheckSet holds a set against the plan: its sites, each once, in order, as many as the quorum, and signed by each.
func (g *Group) CheckSet(sum Sum, set []Signed) error {
	if err := sum.Shape.Check(); err != nil {
		return refuse("%v", err)
	}
	if len(set) < g.Quorum {
		return refuse("%d sites are in it, and the plan's quorum is %d", len(set), g.Quorum)
	}
	for i, s := range set {
		if i > 0 && s.Site <= set[i-1].Site {
			return refuse("its sites do not stand in the plan's order, each once")
		}
		if err := g.Verify(sum, s); err != nil {
			return err
		}
	}
	return nil
}

// Party is what one site knows.
type Party struct {
	Group
	Self int
	Keys Keys

	// oracle stands for what only honest ends can derive, in the test of what a transcript tells.
	oracle oracle
}

// oracle answers in the place of key derivation; nil but in a test.
type oracle interface {
	// once is the seed of a site's one-time key.
	once(site int) [32]byte
	// stream is the mask that a site and an opener share; ok is false for those of ends that are not honest.
	stream(site, opener int) (v Vector, ok bool)
}

// Mask adds this site's masks to v, one for each opener, and vouches for what comes of it. The key is
// that of the release, which no other vector may have; v itself is part of what the one-time key is
// derived from, so that other numbers never meet the same masks.
func (p *Party) Mask(sum Sum, key [32]byte, v Vector) (Signed, error) {
	if err := sum.Shape.Check(); err != nil {
		return Signed{}, err
	}
	if len(v) != sum.Shape.Words() {
		return Signed{}, fmt.Errorf("a vector of %d words for a sum of %d", len(v), sum.Shape.Words())
	}
	seed, err := derive(key[:], fmt.Sprintf("parley one-time key 1/%s/%x", sum.label(), v.Digest()))
	if err != nil {
		return Signed{}, err
	}
	if p.oracle != nil {
		seed = p.oracle.once(p.Self)
	}
	once, err := ecdh.X25519().NewPrivateKey(seed[:])
	if err != nil {
		return Signed{}, err
	}
	s := Signed{Site: p.Self, Key: once.PublicKey().Bytes()}
	for _, o := range p.Openers {
		if err := p.add(sum, v, once, p.Members[o].Open, p.Self, o, s.Key); err != nil {
			return Signed{}, fmt.Errorf("masking for opener %s: %w", p.Members[o].Name, err)
		}
	}
	s.Digest = v.Digest()
	s.Signature = ed25519.Sign(p.Keys.Sign, s.statement(sum))
	return s, nil
}

// Opens reports why this site will not open the sum for a set, which must hold its own vector as it was sent.
func (p *Party) Opens(sum Sum, set []Signed, own [32]byte) error {
	if !slices.Contains(p.Openers, p.Self) && !slices.Contains(p.Spares, p.Self) {
		return refuse("this site opens no sums of the plan")
	}
	if err := p.CheckSet(sum, set); err != nil {
		return err
	}
	if !slices.ContainsFunc(set, func(s Signed) bool { return s.Site == p.Self && s.Digest == own }) {
		return refuse("it does not hold what this site has sent")
	}
	return nil
}

// Unmask is an opener's answer: the sum of its masks over one set, which [Party.Opens] has nothing against.
// Whoever calls it sees to it that it happens for one set in each sum.
func (p *Party) Unmask(sum Sum, set []Signed, own [32]byte) (Vector, error) {
	if err := p.Opens(sum, set, own); err != nil {
		return nil, err
	}
	v := make(Vector, sum.Shape.Words())
	for _, s := range set {
		once, err := ecdh.X25519().NewPublicKey(s.Key)
		if err == nil {
			err = p.add(sum, v, p.Keys.Open, once, s.Site, p.Self, s.Key)
		}
		if err != nil {
			return nil, refuse("site %s: %v", p.Members[s.Site].Name, err)
		}
	}
	return v, nil
}

// add adds the mask that a site and an opener share.
func (p *Party) add(sum Sum, v Vector, own *ecdh.PrivateKey, other *ecdh.PublicKey, site, opener int,
	once []byte) error {
	if p.oracle != nil {
		if mask, ok := p.oracle.stream(site, opener); ok {
			sum.Shape.Add(v, mask)
			return nil
		}
	}
	secret, err := own.ECDH(other)
	if err != nil {
		return err
	}
	key, err := derive(secret, fmt.Sprintf("parley mask 1/%s/%d/%d/%x", sum.label(), site, opener, once))
	if err != nil {
		return err
	}
	return sum.Shape.addStream(v, key)
}

// derive is a key for one purpose.
func derive(secret []byte, purpose string) ([32]byte, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, 32)
	if err != nil {
		return [32]byte{}, err
	}
	return [32]byte(key), nil
}
