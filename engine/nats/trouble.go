package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
)

// explain says in words why there is no connection.
func (c *Conn) explain(address string, err error) string {
	if c.o.Server != nil {
		return strings.TrimPrefix(err.Error(), "nats: ")
	}
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &unknown):
		return address + ": its certificate is not signed by whom this end trusts\n  hint: a proxy that opens " +
			"encrypted connections, another server at this address, or a new certificate authority at the " +
			"coordinator: ask the coordinator"
	case errors.As(err, &host):
		return fmt.Sprintf("%s: its certificate is for another name: %v\n  hint: the coordinator lists the names in "+
			"use when it makes its certificate", address, err)
	case errors.As(err, &invalid):
		return fmt.Sprintf("%s: its certificate is not valid: %v\n  hint: compare the clock of this machine",
			address, err)
	case errors.As(err, &record):
		return address + ": it does not speak TLS first\n  hint: it may have no place left, and is tried again; a " +
			"server of somebody else's needs handshake_first: auto, or the address nats://HOST:PORT"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return address + ": " + c.unauthorised(err)
	case errors.As(err, &dns):
		return fmt.Sprintf("%s: no such host: %v\n  hint: if this network reaches others through a proxy only, set "+
			"HTTPS_PROXY", address, err)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, nats.ErrTimeout):
		return fmt.Sprintf("%s: no answer (%v)\n  hint: a firewall may drop this port: try the wss:// address, or set "+
			"HTTPS_PROXY", address, err)
	case strings.Contains(err.Error(), "tls: internal error"):
		return address + ": it makes no handshake now\n  hint: too many have begun from this address and shown no " +
			"key; it is tried again"
	case errors.Is(err, io.EOF):
		return address + ": it closed the connection before it said anything\n  hint: something on the way may not " +
			"let this kind of connection through: try the wss:// address"
	}
	return fmt.Sprintf("%s: %s", address, strings.TrimPrefix(err.Error(), "nats: "))
}

func (c *Conn) unauthorised(err error) string {
	token, _ := c.credentials()
	claims, bad := jwt.DecodeUserClaims(token)
	switch {
	case errors.Is(err, nats.ErrAuthRevoked):
		return "the coordinator has revoked this end's key, or refuses it for a while because it took too much of " +
			"the broker\n  hint: ask the coordinator, whose audit log says why"
	case bad == nil && claims.Expires > 0 && claims.Expires <= time.Now().Unix():
		return fmt.Sprintf("this end's token was valid until %s\n  hint: ask the coordinator for a new invitation",
			time.Unix(claims.Expires, 0).UTC().Format(time.RFC3339))
	}
	return "it does not accept this end's key and token\n  hint: the coordinator may have revoked them, or refuse " +
		"them for a while because they took too much of the broker, or it is another coordinator's broker: ask the " +
		"coordinator"
}
