package coordinator

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/internal/files"
	encoding "parley/internal/wire"
	"parley/problem"
)

// Secrets are what makes a coordinator the one that its sites know. With them,
// the plans and the sites everything else can be made again.
type Secrets struct {
	Key       *wire.Key // signs and opens
	Authority *nats.Authority
	User      []byte // seed of what the coordinator itself connects with
	Revoked   []Revoked

	issuer      *x509.Certificate // of the broker's certificates; nil with a cluster of somebody else
	issuerBytes []byte
	issuerKey   *ecdsa.PrivateKey
}

// Revoked is a key that may not connect any more.
type Revoked struct {
	_      struct{} `cbor:",toarray"`
	Site   string
	Serial uint64
	User   string
}

type secretBytes struct {
	Key       []byte    `cbor:"key"`
	Authority []byte    `cbor:"authority"`
	User      []byte    `cbor:"user"`
	Issuer    []byte    `cbor:"issuer"`
	IssuerKey []byte    `cbor:"issuer_key"`
	Revoked   []Revoked `cbor:"revoked"`
}

// Account is one in somebody else's cluster.
type Account struct {
	Seed []byte // of the account, or of one of its signing keys; nil for the embedded broker
	ID   string // the account's public key, if the seed is that of a signing key
}

// newSecrets makes them.
func newSecrets(account Account) (s *Secrets, err error) {
	s = &Secrets{}
	if s.Key, err = wire.NewKey(); err != nil {
		return nil, err
	}
	if s.User, _, err = nats.NewUser(); err != nil {
		return nil, err
	}
	if account.Seed != nil || account.ID != "" {
		s.Authority, err = nats.AccountAuthority(account.ID, account.Seed)
		return s, err
	}
	if s.Authority, err = nats.NewAuthority(); err != nil {
		return nil, err
	}
	if s.issuerKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serialNumber(), Subject: pkix.Name{CommonName: "Parley coordinator"}, IsCA: true,
		BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().AddDate(-1, 0, 0),
		NotAfter: time.Now().AddDate(50, 0, 0),
	}
	if s.issuerBytes, err = x509.CreateCertificate(rand.Reader, template, template, s.issuerKey.Public(),
		s.issuerKey); err != nil {
		return nil, err
	}
	s.issuer, err = x509.ParseCertificate(s.issuerBytes)
	return s, err
}

func serialNumber() *big.Int {
	b := make([]byte, 16)
	rand.Read(b)
	return new(big.Int).SetBytes(b)
}

// roots is the pinned certificate, as PEM; empty without one.
func (s *Secrets) roots() []byte {
	if s.issuer == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.issuerBytes})
}

// certificate makes one for the broker, with a key that is never stored. Its time
// is wide, since clocks of hospitals are wrong and daemons run long; what makes it
// good is the issuer that the sites have pinned.
func (s *Secrets) certificate(hosts []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serialNumber(), Subject: pkix.Name{CommonName: "Parley broker"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.issuer, key.Public(), s.issuerKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// users are the revoked keys.
func (s *Secrets) users() (list []string) {
	for _, r := range s.Revoked {
		list = append(list, r.User)
	}
	return list
}

// revoked says whether a site's certificate of this serial has been revoked.
func (s *Secrets) revoked(site string, serial uint64) bool {
	return slices.ContainsFunc(s.Revoked, func(r Revoked) bool { return r.Site == site && r.Serial == serial })
}

const keyMark = "parley-coordinator-key-"

// save writes the secrets to a file that its owner alone can read.
func (s *Secrets) save(path string) error {
	b := secretBytes{User: s.User, Issuer: s.issuerBytes, Revoked: s.Revoked}
	var err error
	if b.Key, err = s.Key.MarshalBinary(); err != nil {
		return err
	}
	if b.Authority, err = s.Authority.MarshalBinary(); err != nil {
		return err
	}
	if s.issuerKey != nil {
		if b.IssuerKey, err = x509.MarshalPKCS8PrivateKey(s.issuerKey); err != nil {
			return err
		}
	}
	data, err := encoding.Marshal(b)
	if err != nil {
		return err
	}
	return files.WriteOwn(path, federation.Armour("# The secrets of a coordinator of Parley. Keep a copy where nobody "+
		"else can read it.\n", keyMark, data, 0))
}

// loadSecrets reads what save wrote.
func loadSecrets(path string) (*Secrets, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.Problem{File: path, What: "there is no such key",
			Hint: "a coordinator's folder is made with: parley coordinator init " + filepath.Dir(path)}
	}
	if err != nil {
		return nil, err
	}
	s, err := parseSecrets(text)
	if err != nil {
		return nil, problem.Problem{File: path, What: err.Error(),
			Hint: "bring the copy of coordinator.key back that was kept elsewhere"}
	}
	return s, nil
}

func parseSecrets(text []byte) (s *Secrets, err error) {
	data, err := federation.Unarmour(keyMark, text)
	switch {
	case errors.Is(err, federation.ErrUnmarked):
		return nil, errors.New("this is not a coordinator's key")
	case err != nil:
		return nil, fmt.Errorf("the key is damaged: %w", err)
	}
	var b secretBytes
	if err := encoding.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("the key is damaged: %w", err)
	}
	s = &Secrets{User: b.User, Revoked: b.Revoked, issuerBytes: b.Issuer}
	if s.Key, err = wire.ParseKey(b.Key); err != nil {
		return nil, err
	}
	if s.Authority, err = nats.ParseAuthority(b.Authority); err != nil {
		return nil, err
	}
	if len(b.Issuer) == 0 {
		return s, nil
	}
	if s.issuer, err = x509.ParseCertificate(b.Issuer); err != nil {
		return nil, fmt.Errorf("the key is damaged: %w", err)
	}
	key, err := x509.ParsePKCS8PrivateKey(b.IssuerKey)
	if err != nil {
		return nil, fmt.Errorf("the key is damaged: %w", err)
	}
	var ok bool
	if s.issuerKey, ok = key.(*ecdsa.PrivateKey); !ok {
		return nil, errors.New("the key is damaged: the issuer's is of another kind")
	}
	return s, nil
}
