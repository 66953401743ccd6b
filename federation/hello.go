package federation

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode"

	"parley/engine/wire"
	encoding "parley/internal/wire"
)

// The words in which a site says where it stands with a study.
const (
	Pending   = "pending"   // a person at the site has not decided
	Approved  = "approved"  // it answers
	Computing = "computing" // it is at work on a task
	Refused   = "refused"   // it will not take part
	Withdrawn = "withdrawn" // it answers no more, but sends again what it has sent, to a coordinator that has lost it
	Unable    = "unable"    // something has to be mended there first: its program, its data, its store
	Done      = "done"      // it has what it may have
	Closed    = "closed"    // the coordinator posts it no more; said by the site to its own people only
)

// Standing is where a site stands with one study.
type Standing struct {
	_     struct{} `cbor:",toarray"`
	Study string   // hexadecimal digest of the plan
	Word  string   // one of the words above
	Text  string   // why, as far as the coordinator may know it
}

// Hello is what a site says of itself, again whenever something changes.
type Hello struct {
	Program Program `cbor:"program"`
	// Nonce is that of the last board that the site has seen, Life that of the site's
	// process, and Count rises with each of its hellos: so an old one that is delivered
	// again says nothing.
	Nonce   []byte     `cbor:"nonce"`
	Life    []byte     `cbor:"life"`
	Count   uint64     `cbor:"count"`
	Studies []Standing `cbor:"studies"`
	// Bye says that it is the last of the process.
	Bye bool `cbor:"bye,omitempty"`
}

// greeting is a hello as it is put: whoever opens it learns from the certificate
// who should have signed it.
type greeting struct {
	_           struct{} `cbor:",toarray"`
	Certificate []byte
	Sealed      []byte
}

// seal encodes a value and seals it to whoever may read it at a place.
func seal(k *wire.Key, to wire.Peer, place string, v any) ([]byte, error) {
	data, err := encoding.Marshal(v)
	if err != nil {
		return nil, err
	}
	return k.Seal(to, place, data)
}

// open decodes to v, a pointer, what somebody has sealed.
func open(k *wire.Key, from wire.Peer, place string, message []byte, v any) error {
	data, err := k.Open(from, place, message)
	if err != nil {
		return err
	}
	return encoding.Unmarshal(data, v)
}

// Greet seals a hello to the coordinator.
func Greet(k *wire.Key, coordinator wire.Peer, certificate []byte, site string, h Hello) ([]byte, error) {
	sealed, err := seal(k, coordinator, HelloKey(site), h)
	if err != nil {
		return nil, err
	}
	return encoding.Marshal(greeting{Certificate: certificate, Sealed: sealed})
}

// OpenHello opens a hello of a site, and returns the certificate by which it is
// known, which the coordinator itself has issued.
func OpenHello(k *wire.Key, site string, message []byte) (h Hello, c Certificate, err error) {
	var g greeting
	if err := encoding.Unmarshal(message, &g); err != nil {
		return h, c, err
	}
	if c, err = ParseCertificate(g.Certificate); err != nil {
		return h, c, err
	}
	if c.Site != site {
		return h, c, fmt.Errorf("it carries the certificate of site %q", c.Site)
	}
	peer, err := c.Verify(k.Peer())
	if err != nil {
		return h, c, err
	}
	if err := open(k, peer, HelloKey(site), g.Sealed, &h); err != nil {
		return h, c, err
	}
	return h, c, h.check()
}

// check limits what a site may say.
func (h *Hello) check() error {
	if len(h.Studies) > maxPosted || len(h.Program.Methods) > maxPosted || len(h.Nonce) > maxNonce || len(h.Life) > maxNonce {
		return errors.New("it is too long")
	}
	if len(h.Program.Version)+len(h.Program.Platform) > maxText {
		return errors.New("it says too much of its program")
	}
	for i := range h.Studies {
		s := &h.Studies[i]
		if len(s.Study) != studyDigits || len(s.Word) > maxNonce {
			return errors.New("it speaks of a study that cannot be one")
		}
		s.Text = Printable(s.Text)
	}
	h.Program.Version, h.Program.Platform = Printable(h.Program.Version), Printable(h.Program.Platform)
	return nil
}

// studyDigits is the length of a study's digest in hexadecimal.
const studyDigits = 64

// Printable is what another organisation says, for logs and pages: one line, and
// not a long one.
func Printable(text string) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text[:min(len(text), maxText)])
	return strings.TrimSpace(line)
}

// Posted is a study that waits for a site's decision or its answers.
type Posted struct {
	_     struct{} `cbor:",toarray"`
	Study string
	Plan  []byte // encoded; empty once the site has it
	// Needs says what the site must install to take part; empty if its program fits.
	Needs string
	// Stopped says why the study does not go on; empty while it does.
	Stopped string
}

// maxPosted limits the studies of a coordinator that run at once, maxText what is
// said of each, and maxNonce what is drawn at random.
const (
	maxPosted = 1000
	maxText   = 2000
	maxNonce  = 64
)

// Board is what the coordinator posts for one site.
type Board struct {
	Program Program  `cbor:"program"`
	Nonce   []byte   `cbor:"nonce"`         // of this life of the coordinator
	JWT     string   `cbor:"jwt,omitempty"` // renewed credentials
	Studies []Posted `cbor:"studies"`
	// Ask rises when every process of the site is to say a hello at once. Second is the
	// life of one that is refused, because another serves as the site and is alive.
	Ask    uint64 `cbor:"ask,omitempty"`
	Second []byte `cbor:"second,omitempty"`
}

// Post seals a board to a site.
func Post(k *wire.Key, to wire.Peer, site string, b Board) ([]byte, error) {
	if len(b.Studies) > maxPosted {
		return nil, fmt.Errorf("%d studies at once: at most %d", len(b.Studies), maxPosted)
	}
	return seal(k, to, BoardKey(site), b)
}

// OpenBoard opens a board at the site.
func OpenBoard(k *wire.Key, coordinator wire.Peer, site string, message []byte) (b Board, err error) {
	if err := open(k, coordinator, BoardKey(site), message, &b); err != nil {
		return b, err
	}
	if len(b.Studies) > maxPosted || len(b.Nonce) > maxNonce || len(b.Second) > maxNonce {
		return b, errors.New("it is too long")
	}
	for i := range b.Studies {
		p := &b.Studies[i]
		if digits, err := hex.DecodeString(p.Study); err != nil || len(digits) != studyDigits/2 || p.Study != strings.ToLower(p.Study) {
			return b, errors.New("it posts a study that cannot be one") // its digest names a folder
		}
		p.Needs, p.Stopped = Printable(p.Needs), Printable(p.Stopped)
	}
	b.Program.Version, b.Program.Platform = Printable(b.Program.Version), Printable(b.Program.Platform)
	return b, nil
}

// VersionMismatch says what a site must install to take part in a study whose method the
// coordinator has at a revision; empty if it fits.
func VersionMismatch(coordinator, site Program, method string) string {
	want, got := coordinator.Methods[method], site.Methods[method]
	switch {
	case coordinator.Protocol != site.Protocol:
		return fmt.Sprintf("install parley %s, with revision %d of method %s: the coordinator speaks version %d of the protocol, and parley %s speaks version %d", coordinator.Version, want, method, coordinator.Protocol, site.Version, site.Protocol)
	case got == 0:
		return fmt.Sprintf("install parley %s, with revision %d of method %s: parley %s has no such method", coordinator.Version, want, method, site.Version)
	case want != got:
		return fmt.Sprintf("install parley %s: this study is computed with revision %d of method %s, and parley %s has revision %d", coordinator.Version, want, method, site.Version, got)
	}
	return ""
}

// Ending is what a site gets when a study has ended.
type Ending struct {
	Share []byte // for the site's half of the method, to report to its own people
	Files []File // of the coordinator's results: the model, and what else everybody may read
	Words string // why there is nothing more; empty at a good end
}

// File is one of the results.
type File struct {
	_    struct{} `cbor:",toarray"`
	Name string   // relative, with forward slashes
	Data []byte
}

// sharedFiles are those of the coordinator's results that sites get.
var sharedFiles = []string{"plan.yaml", "metrics.json", "privacy.json", "report.html"}

// Shared says whether a file of the coordinator's results is for the sites.
func Shared(name string) bool {
	return slices.Contains(sharedFiles, name) || strings.HasPrefix(name, "model/")
}

// Packed are results, compressed once for all sites.
type Packed struct {
	data  []byte
	words string // what was left out; empty if nothing was
}

// Pack compresses files to at most so many bytes. If need be it leaves some out, the
// model last.
func Pack(files []File, most int) (p Packed, err error) {
	for _, keep := range []func(name string) bool{
		func(string) bool { return true },
		func(name string) bool { return strings.HasPrefix(name, "model/") },
		func(string) bool { return false },
	} {
		kept := slices.DeleteFunc(slices.Clone(files), func(f File) bool { return !keep(f.Name) })
		if len(kept) < len(files) {
			p.words = "some of the results are too large to be sent: ask the coordinator's people for them"
		}
		if p.data, err = compress(kept); err != nil || len(p.data) <= most {
			return p, err
		}
	}
	return p, nil
}

func compress(files []File) ([]byte, error) {
	data, err := encoding.Marshal(files)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// sentEnding is an ending as it is sent.
type sentEnding struct {
	_     struct{} `cbor:",toarray"`
	Share []byte
	Files []byte // compressed
	Words string
}

// Encode makes the bytes of an ending whose files were packed before.
func (e Ending) Encode(files Packed) ([]byte, error) {
	if e.Words == "" {
		e.Words = files.words
	}
	return encoding.Marshal(sentEnding{Share: e.Share, Files: files.data, Words: e.Words})
}

// ParseEnding reads what [Ending.Encode] wrote. Files that are not for sites, or
// whose names lead elsewhere, are an error.
func ParseEnding(data []byte) (Ending, error) {
	e, err := parseEnding(data)
	if err != nil {
		return Ending{}, fmt.Errorf("the end of the study: %w", err)
	}
	return e, nil
}

func parseEnding(data []byte) (e Ending, err error) {
	var sent sentEnding
	if err := encoding.Unmarshal(data, &sent); err != nil {
		return e, err
	}
	e.Share, e.Words = sent.Share, Printable(sent.Words)
	if len(sent.Files) == 0 {
		return e, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(sent.Files))
	if err != nil {
		return e, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, encoding.MaxBytes+1))
	if err == nil {
		err = encoding.Unmarshal(plain, &e.Files)
	}
	if err != nil {
		return e, err
	}
	for _, f := range e.Files {
		if f.Name != path.Clean(f.Name) || strings.ContainsAny(f.Name, `\:`) || !Shared(f.Name) {
			return e, fmt.Errorf("it names a file %.200q, which is not one of the results", f.Name)
		}
	}
	return e, nil
}
