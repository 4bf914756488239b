package transport

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// credential writes who is asking into the headers of requests to host, and of no others.
type credential struct {
	host        string
	token       *tokenSource
	basic       string
	impersonate http.Header
}

func newCredential(cfg *Config, host string) (*credential, error) {
	c := &credential{host: host, impersonate: impersonationHeader(cfg.Impersonate)}
	switch {
	case cfg.TokenFile != "" || cfg.Token != "":
		if cfg.Username != "" {
			return nil, errors.New("a token and a user name exclude each other: drop one")
		}
		c.token = &tokenSource{path: cfg.TokenFile, token: cfg.Token}
	case cfg.Username != "":
		c.basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(cfg.Username+":"+cfg.Password))
	}
	if cfg.Impersonate.User == "" && len(c.impersonate) > 0 {
		return nil, errors.New("impersonating a uid, groups or extras needs a user to impersonate")
	}
	return c, nil
}

func impersonationHeader(as Impersonation) http.Header {
	header := http.Header{}
	if as.User != "" {
		header.Set("Impersonate-User", as.User)
	}
	if as.UID != "" {
		header.Set("Impersonate-Uid", as.UID)
	}
	for _, group := range as.Groups {
		header.Add("Impersonate-Group", group)
	}
	for key, values := range as.Extra {
		for _, value := range values {
			header.Add("Impersonate-Extra-"+escapeHeaderKey(strings.ToLower(key)), value)
		}
	}
	return header
}

// escapeHeaderKey percent-encodes what a header's name cannot hold; the server undoes it.
func escapeHeaderKey(key string) string {
	var escaped strings.Builder
	for i := range len(key) {
		switch b := key[i]; {
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', strings.IndexByte("!#$&'*+-.^_`|~", b) >= 0:
			escaped.WriteByte(b)
		default:
			fmt.Fprintf(&escaped, "%%%02X", b)
		}
	}
	return escaped.String()
}

// wrap authenticates what goes through next.
func (c *credential) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
		if req.URL.Host != c.host {
			return next.RoundTrip(req)
		}
		authorized := req.Clone(req.Context())
		for name, values := range c.impersonate {
			authorized.Header[name] = values
		}
		if c.basic != "" {
			authorized.Header.Set("Authorization", c.basic)
		}
		if c.token != nil {
			token, err := c.token.current(time.Now())
			if err != nil {
				return nil, errors.Join(err, closeBody(req))
			}
			authorized.Header.Set("Authorization", "Bearer "+token)
		}
		return next.RoundTrip(authorized)
	})
}

func closeBody(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	return req.Body.Close()
}

// tokenLifetime is how long a token read from a file is used before the file is read again, as in client-go.
const tokenLifetime = time.Minute

// tokenSource holds a fixed token, or one that a file holds and somebody renews.
type tokenSource struct {
	path string

	mu    sync.Mutex
	token string
	read  time.Time
}

// current is the token to send now. While the file cannot be read the last token it held goes on.
func (s *tokenSource) current(now time.Time) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path == "" || (!s.read.IsZero() && now.Sub(s.read) < tokenLifetime) {
		return s.token, nil
	}
	data, err := os.ReadFile(s.path)
	token := strings.TrimSpace(string(data))
	switch {
	case err == nil && token != "":
		s.token, s.read = token, now
	case s.token != "":
	case err != nil:
		return "", fmt.Errorf("read the bearer token: %w", err)
	default:
		return "", fmt.Errorf("read the bearer token: %s is empty", s.path)
	}
	return s.token, nil
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
