package nats

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"parley/internal/wire"
)

// Authority signs who may connect. For the server within this program it has the
// keys of an operator, a system account, one account for the coordinator and
// JetStream, and one for everybody else; for a cluster of somebody else's, only a
// key of one account for all.
//
// A client chooses where the reply to a request goes, and the server sends it there
// with rights of its own. In JetStream's account a reply to $JS.API.STREAM.DELETE
// would delete a stream, whoever asked. So the other ends have an account without
// JetStream, whose subjects lead into the first account for values and wakes alone.
// With a cluster of somebody else's there is no such wall.
type Authority struct {
	operator, system nkeys.KeyPair // nil for a foreign cluster
	account          nkeys.KeyPair // signs users
	issuer           string        // the account's public key
	ends             nkeys.KeyPair // of the account of sites and guests; nil for a foreign cluster
	// roles sign these, by the buckets in which they may do something: what that is stands in the account.
	roles map[string]nkeys.KeyPair
}

// authorityBytes is an authority as it is kept.
type authorityBytes struct {
	_                         struct{} `cbor:",toarray"`
	Operator, System, Account []byte   // seeds; the first two empty for a foreign cluster
	Issuer                    string
}

// NewAuthority makes the keys for a server of one's own.
func NewAuthority() (*Authority, error) {
	operator, err1 := nkeys.CreateOperator()
	system, err2 := nkeys.CreateAccount()
	account, err3 := nkeys.CreateAccount()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	issuer, err := account.PublicKey()
	if err != nil {
		return nil, err
	}
	a := &Authority{operator: operator, system: system, account: account, issuer: issuer}
	return a, a.derive()
}

// derive makes the keys of the ends' account, which follow from the account's.
func (a *Authority) derive() error {
	seed, err := a.account.Seed()
	if err != nil {
		return err
	}
	key := func(of string) (nkeys.KeyPair, error) {
		raw := sha256.Sum256(append([]byte(of+"\x00"), seed...))
		return nkeys.FromRawSeed(nkeys.PrefixByteAccount, raw[:])
	}
	ends, err1 := key("parley account of ends")
	site, err2 := key("parley role in *")
	guest, err3 := key("parley role in " + control)
	a.ends, a.roles = ends, map[string]nkeys.KeyPair{"*": site, control: guest}
	return errors.Join(err1, err2, err3)
}

// AccountAuthority signs for an account of an existing cluster, with the seed of one of its signing keys (SA…). account
// is the account's own public key (A…); empty if the seed is that of the account itself.
func AccountAuthority(account string, seed []byte) (*Authority, error) {
	key, err := accountKey(seed)
	if err == nil && account == "" {
		account, err = key.PublicKey()
	}
	if err != nil {
		return nil, err
	}
	if !nkeys.IsValidPublicAccountKey(account) {
		return nil, fmt.Errorf("%.60q is no account's public key\n  hint: it begins with A: see nsc describe account",
			account)
	}
	return &Authority{account: key, issuer: account}, nil
}

func accountKey(seed []byte) (nkeys.KeyPair, error) {
	prefix, _, err := nkeys.DecodeSeed(seed)
	if err != nil || prefix != nkeys.PrefixByteAccount {
		return nil, errors.New("this is no seed of an account\n  hint: it begins with SA: see nsc list keys " +
			"--show-seeds")
	}
	return nkeys.FromSeed(seed)
}

// MarshalBinary encodes the secret keys.
func (a *Authority) MarshalBinary() ([]byte, error) {
	b := authorityBytes{Issuer: a.issuer}
	for _, k := range []struct {
		key  nkeys.KeyPair
		seed *[]byte
	}{{a.operator, &b.Operator}, {a.system, &b.System}, {a.account, &b.Account}} {
		if k.key == nil {
			continue
		}
		seed, err := k.key.Seed()
		if err != nil {
			return nil, err
		}
		*k.seed = seed
	}
	return wire.Marshal(b)
}

// ParseAuthority decodes what [Authority.MarshalBinary] wrote.
func ParseAuthority(data []byte) (*Authority, error) {
	var b authorityBytes
	if err := wire.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("reading the broker's authority: %w", err)
	}
	a, err := AccountAuthority(b.Issuer, b.Account)
	if err != nil {
		return nil, fmt.Errorf("reading the broker's authority: %w", err)
	}
	if len(b.Operator) == 0 && len(b.System) == 0 {
		return a, nil
	}
	operator, err1 := nkeys.FromSeed(b.Operator)
	system, err2 := accountKey(b.System)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("reading the broker's authority: %w", err)
	}
	a.operator, a.system = operator, system
	return a, a.derive()
}

// NewUser makes the key that one end connects with. It signs whatever a broker
// asks, so nothing else is ever signed with it.
func NewUser() (seed []byte, public string, err error) {
	user, err := nkeys.CreateUser()
	if err != nil {
		return nil, "", err
	}
	if seed, err = user.Seed(); err != nil {
		return nil, "", err
	}
	public, err = user.PublicKey()
	return seed, public, err
}

// PublicOf returns the public half of a key that [NewUser] made.
func PublicOf(seed []byte) (string, error) {
	prefix, _, err := nkeys.DecodeSeed(seed)
	if err != nil || prefix != nkeys.PrefixByteUser {
		return "", errors.New("this is no key of a user of the broker")
	}
	user, err := nkeys.FromSeed(seed)
	if err != nil {
		return "", err
	}
	return user.PublicKey()
}

// Coordinator lets a key do everything in the account.
func (a *Authority) Coordinator(public string) (string, error) {
	return a.sign(a.account, jwt.NewUserClaims(public), coordinator, time.Time{})
}

// Site lets a key read task.NAME and write answer.NAME in every bucket, until
// expires (zero: for ever).
func (a *Authority) Site(name, public string, expires time.Time) (string, error) {
	if !siteName.MatchString(name) || name == coordinator {
		return "", fmt.Errorf("a site cannot have the name %.60q\n  hint: up to 40 of a-z, 0-9 and -, beginning with "+
			"a letter or digit; coordinator is taken", name)
	}
	return a.user(name, "*", public, expires)
}

// Guest lets a key do the same in the bucket control only, as guest_ID.
func (a *Authority) Guest(id, public string, expires time.Time) (string, error) {
	if !guestID.MatchString(id) {
		return "", fmt.Errorf("an invitation cannot have the name %.80q\n  hint: up to 40 letters, digits, - and _", id)
	}
	return a.user(guest+id, control, public, expires)
}

// user lets an end other than the coordinator do what is its in a bucket. A token of a server of one's own says who it
// is alone.
func (a *Authority) user(name, bucket, public string, expires time.Time) (token string, err error) {
	c := jwt.NewUserClaims(public)
	switch {
	case c == nil:
		return "", errors.New("no public key was given")
	case a.ends == nil: // a server may take shorter messages than the one within this program
		c.UserPermissionLimits = rights(name, bucket, maxParts)
		return a.sign(a.account, c, name, expires)
	}
	c.SetScoped(true)
	if c.IssuerAccount, err = a.ends.PublicKey(); err != nil {
		return "", err
	}
	return a.sign(a.roles[bucket], c, name, expires)
}

// rights lists what an end may do. The parts of a value that it may write are listed one by one, so that it fills a
// bounded amount.
//
// An end can have an acknowledgement, or its own value read back, stored as another's
// answer: see [Authority]. That is noise: values are signed by those who are named
// in their keys, and the true one is put again.
func rights(name, bucket string, parts int) jwt.UserPermissionLimits {
	r := jwt.NewUserScope().Template
	r.Subs = 16
	r.AllowedConnectionTypes.Add(jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket, jwt.ConnectionTypeInProcess)
	task, answer := place{bucket, "task." + name}, place{bucket, "answer." + name}
	r.Sub.Allow.Add(inbox(name)+".>", task.wake())
	r.Pub.Allow.Add(answer.subject(), answer.wake())
	for i := range parts {
		r.Pub.Allow.Add(answer.part(i).subject())
	}
	stream := "*"
	if bucket != "*" {
		stream = task.stream()
	}
	for _, p := range []place{task, answer} {
		get := "$JS.API.DIRECT.GET." + stream + "." + p.subject()
		r.Pub.Allow.Add(get, get+".*")
	}
	return r
}

func (a *Authority) sign(key nkeys.KeyPair, c *jwt.UserClaims, name string, expires time.Time) (string, error) {
	if c == nil || !nkeys.IsValidPublicUserKey(c.Subject) {
		return "", errors.New("this is no public key of a user of the broker\n  hint: it begins with U")
	}
	c.Name = name
	if !expires.IsZero() {
		c.Expires = expires.Unix()
	}
	if own, err := a.account.PublicKey(); key == a.account && (err != nil || own != a.issuer) {
		c.IssuerAccount = a.issuer
	}
	return c.Encode(key)
}

// inbox is where the replies to an end go: each has its own, so that none reads
// those of others.
func inbox(name string) string { return "_I_" + name }

// trust is what a server of one's own believes: who signs accounts, and the
// accounts themselves with who is revoked.
func (a *Authority) trust(revoked []string) (operator *jwt.OperatorClaims, system string, accounts map[string]string,
	err error) {
	if a.operator == nil || a.system == nil {
		return nil, "", nil, errors.New("this authority is of somebody else's cluster: it cannot start a server\n  " +
			"hint: make one with NewAuthority")
	}
	public, err := a.operator.PublicKey()
	if err != nil {
		return nil, "", nil, err
	}
	if system, err = a.system.PublicKey(); err != nil {
		return nil, "", nil, err
	}
	oc := jwt.NewOperatorClaims(public)
	oc.Name = "parley"
	oc.SystemAccount = system
	encoded, err := oc.Encode(a.operator)
	if err != nil {
		return nil, "", nil, err
	}
	if operator, err = jwt.DecodeOperatorClaims(encoded); err != nil {
		return nil, "", nil, err
	}
	sc := jwt.NewAccountClaims(system)
	sc.Name = "system"
	ac := jwt.NewAccountClaims(a.issuer)
	ac.Name = "parley"
	ac.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit,
		Consumer: jwt.NoLimit, MaxAckPending: jwt.NoLimit}
	ends, err := a.ends.PublicKey()
	if err != nil {
		return nil, "", nil, err
	}
	for _, w := range ways {
		ac.Exports.Add(&jwt.Export{Name: w, Subject: jwt.Subject(w), Type: jwt.Service})
	}
	ac.Imports.Add(&jwt.Import{Name: wakes, Account: ends, Subject: wakes, Type: jwt.Service})
	ec, err := a.endsClaims(revoked)
	if err != nil {
		return nil, "", nil, err
	}
	accounts = map[string]string{}
	for _, c := range []*jwt.AccountClaims{sc, ac, ec} {
		if accounts[c.Subject], err = c.Encode(a.operator); err != nil {
			return nil, "", nil, err
		}
	}
	return operator, system, accounts, nil
}

// never is after every token that could be signed for a key.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// ways lead from the account of the ends into that of JetStream: values to write and
// read, and wakes. What an end may use of them says its role.
var ways = []string{"$KV.*.answer.>", "$JS.API.DIRECT.GET.*.$KV.*.answer.>", "$JS.API.DIRECT.GET.*.$KV.*.task.>",
	"w.*.answer.>"}

// wakes lead from the coordinator to the ends. They are a service of the ends, and
// not a stream that the ends import: NATS takes an account's imports away and back
// again when its claims change, as with each revocation, and an end that subscribes
// in between would hear nothing until it connects anew.
const wakes = "w.*.task.>"

// endsClaims describes the account of the ends, and who of them is revoked, by key,
// whatever token comes with it.
func (a *Authority) endsClaims(revoked []string) (*jwt.AccountClaims, error) {
	public, err := a.ends.PublicKey()
	if err != nil {
		return nil, err
	}
	ec := jwt.NewAccountClaims(public)
	ec.Name = "ends"
	for _, w := range ways {
		ec.Imports.Add(&jwt.Import{Name: w, Account: a.issuer, Subject: jwt.Subject(w), Type: jwt.Service})
	}
	ec.Exports.Add(&jwt.Export{Name: wakes, Subject: wakes, Type: jwt.Service})
	for bucket, key := range a.roles {
		role := jwt.NewUserScope()
		if role.Key, err = key.PublicKey(); err != nil {
			return nil, err
		}
		role.Template = rights("{{name()}}", bucket, maxAnswer/maxMessage)
		ec.SigningKeys.AddScopedSigner(role)
	}
	for _, public := range revoked {
		if !nkeys.IsValidPublicUserKey(public) {
			return nil, fmt.Errorf("cannot revoke %.80q: it is no public key of a user of the broker", public)
		}
		ec.RevokeAt(public, never)
	}
	return ec, nil
}
