package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// fileAuthenticator asks with what the config holds, or files that it names: a token or a user's name and password,
// a certificate, both or nothing.
type fileAuthenticator struct {
	token, certificate, key *renewedFile
	basic                   string
	now                     func() time.Time

	mu sync.Mutex
	// used are the token, certificate and key that current was made of.
	used    [3][]byte
	current *identity
}

func newFileAuthenticator(cfg *Config) (*fileAuthenticator, error) {
	a := &fileAuthenticator{
		token:       &renewedFile{path: cfg.TokenFile, data: []byte(cfg.Token.Reveal())},
		certificate: inlineOrFile(cfg.CertData, cfg.CertFile),
		key:         inlineOrFile([]byte(cfg.KeyData.Reveal()), cfg.KeyFile),
		now:         time.Now,
	}
	if cfg.Username != "" || !cfg.Password.IsZero() {
		a.basic = basic(cfg.Username, cfg.Password.Reveal())
	}
	hasCertificate, hasKey := len(cfg.CertData) > 0 || cfg.CertFile != "", !cfg.KeyData.IsZero() || cfg.KeyFile != ""
	if hasCertificate != hasKey {
		return nil, errors.New("a client certificate needs its key and a key its certificate: one is missing")
	}
	// A pair that cannot work is found out here, not by the server.
	certificate, err := a.certificate.content(a.now())
	if err != nil {
		return nil, fmt.Errorf("read the client certificate: %w", err)
	}
	key, err := a.key.content(a.now())
	if err != nil {
		return nil, fmt.Errorf("read the client key: %w", err)
	}
	_, err = parsePair(certificate, key)
	return a, err
}

// identity makes a new one only when a file has changed: parsing a certificate takes longer than a request.
func (a *fileAuthenticator) identity(context.Context) (*identity, error) {
	var now [3][]byte
	for i, file := range []struct {
		*renewedFile
		what string
	}{{a.token, "bearer token"}, {a.certificate, "client certificate"}, {a.key, "client key"}} {
		data, err := file.content(a.now())
		if err != nil {
			return nil, fmt.Errorf("read the %s: %w", file.what, err)
		}
		now[i] = data
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil && slices.EqualFunc(a.used[:], now[:], bytes.Equal) {
		return a.current, nil
	}
	certificate, err := parsePair(now[1], now[2])
	switch {
	case err != nil && a.current == nil:
		return nil, err
	case err != nil:
		// Certificate and key are renewed one after the other: until both are, the old pair goes on.
		now[1], now[2], certificate = a.used[1], a.used[2], a.current.certificate
	}
	a.used, a.current = now, &identity{authorization: a.basic, certificate: certificate}
	if token := bytes.TrimSpace(now[0]); len(token) > 0 {
		a.current.authorization = bearer(string(token))
	}
	return a.current, nil
}

// renew looks at the files at once.
func (a *fileAuthenticator) renew(ctx context.Context, _ *identity) (*identity, error) {
	for _, file := range []*renewedFile{a.token, a.certificate, a.key} {
		file.forget()
	}
	return a.identity(ctx)
}

// parsePair reads a client certificate and its key, nil where there are none.
func parsePair(certificate, key []byte) (*tls.Certificate, error) {
	if len(certificate) == 0 && len(key) == 0 {
		return nil, nil
	}
	parsed, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("client certificate and key: %w", err)
	}
	return &parsed, nil
}
