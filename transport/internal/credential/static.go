package credential

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// maxFileAge is the time before a file is read again, as in client-go.
const maxFileAge = time.Minute

// File is a file renewed by an external program, or fixed bytes. It is safe for concurrent use.
type File struct {
	path string // "" for fixed data

	mu     sync.Mutex
	data   []byte
	readAt time.Time
}

// NewFile returns a File with a copy of data, or with the file at path if data is empty. It is empty if both are.
func NewFile(data []byte, path string) *File {
	if len(data) > 0 {
		path = ""
	}
	return &File{path: path, data: bytes.Clone(data)}
}

// Content returns the file's content. The file is read again after a minute. On failure, the previous content is returned.
func (f *File) Content(now time.Time) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" || (!f.readAt.IsZero() && now.Sub(f.readAt) < maxFileAge) {
		return f.data, nil
	}
	data, err := os.ReadFile(f.path)
	switch {
	case err == nil && len(data) > 0:
		f.data = data
		f.readAt = now
	case len(f.data) > 0:
	case err != nil:
		return nil, err
	default:
		return nil, fmt.Errorf("%s is empty", f.path)
	}
	return f.data, nil
}

// invalidate makes the next call of Content read the file.
func (f *File) invalidate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readAt = time.Time{}
}

// Static is an [Authenticator] with a user's token, password and certificate, inline or in files.
type Static struct {
	Now func() time.Time // time.Now, unless a test replaces it

	basic string
	files [3]staticFile // token, certificate and key

	mu sync.Mutex
	// used is the content of files in current.
	used    [3][]byte
	current *Credential
}

type staticFile struct {
	*File
	name string
}

// NewStatic reads and validates the user's certificate and key; a token file is read by the first request. Data wins over the
// file of the same name, but TokenFile over Token.
func NewStatic(user kubeconfig.User) (*Static, error) {
	s := &Static{Now: time.Now, files: [3]staticFile{
		{&File{path: user.TokenFile, data: []byte(user.Token.Reveal())}, "bearer token"},
		{NewFile(user.ClientCertificateData, user.ClientCertificate), "client certificate"},
		{NewFile([]byte(user.ClientKeyData.Reveal()), user.ClientKey), "client key"},
	}}
	if user.Username != "" || !user.Password.IsZero() {
		s.basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username+":"+user.Password.Reveal()))
	}
	hasCertificate := len(user.ClientCertificateData) > 0 || user.ClientCertificate != ""
	if hasKey := !user.ClientKeyData.IsZero() || user.ClientKey != ""; hasKey != hasCertificate {
		return nil, errors.New("client certificate and key: one is missing")
	}
	content, err := s.read(1)
	if err == nil {
		_, err = ParsePair(content[1], content[2])
	}
	return s, err
}

// read returns the content of files[first:].
func (s *Static) read(first int) (content [3][]byte, err error) {
	for i, file := range s.files[first:] {
		if content[first+i], err = file.Content(s.Now()); err != nil {
			return content, fmt.Errorf("read the %s: %w", file.name, err)
		}
	}
	return content, nil
}

// Credential implements [Authenticator]. It returns the same credential until a file has changed.
func (s *Static) Credential(context.Context) (*Credential, error) {
	content, err := s.read(0)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && slices.EqualFunc(s.used[:], content[:], bytes.Equal) {
		return s.current, nil
	}
	certificate, err := s.pair(content)
	switch {
	case err != nil && s.current == nil:
		return nil, err
	case err != nil:
		// Certificate and key are replaced in two steps. The old pair stays in use until both are replaced.
		content[1] = s.used[1]
		content[2] = s.used[2]
		certificate = s.current.Certificate
	}
	s.used = content
	s.current = &Credential{Authorization: s.basic, Certificate: certificate}
	if token := bytes.TrimSpace(content[0]); len(token) > 0 {
		s.current.Authorization = "Bearer " + string(token)
	}
	return s.current, nil
}

// pair returns the certificate of content. An unchanged certificate keeps its pointer. s.mu must be held.
func (s *Static) pair(content [3][]byte) (*tls.Certificate, error) {
	if s.current != nil && bytes.Equal(s.used[1], content[1]) && bytes.Equal(s.used[2], content[2]) {
		return s.current.Certificate, nil
	}
	return ParsePair(content[1], content[2])
}

// Renew implements [Authenticator] by reading the files at once.
func (s *Static) Renew(ctx context.Context, _ *Credential) (*Credential, error) {
	for _, file := range s.files {
		file.invalidate()
	}
	return s.Credential(ctx)
}

// ParsePair parses a client certificate and its key. It returns nil if both are empty.
func ParsePair(certificate, key []byte) (*tls.Certificate, error) {
	if len(certificate) == 0 && len(key) == 0 {
		return nil, nil
	}
	parsed, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("client certificate and key: %w", err)
	}
	return &parsed, nil
}
