package sanitize

import "strings"

// Error returns err with a text that is safe to print; net/http quotes what a peer sent, a proxy's status line for example.
// errors.Is and errors.As are those of err.
func Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if safe := Text(text, maxStatusMessage); safe != text {
		return &sanitizedError{error: err, text: safe}
	}
	return err
}

type sanitizedError struct {
	error
	text string
}

func (e *sanitizedError) Error() string { return e.text }

func (e *sanitizedError) Unwrap() error { return e.error }

// URL returns a URL without its user, password, query and fragment, also if it cannot be parsed. A password may have a
// character that ends a URL's host: then only the scheme is left.
func URL(raw string) string {
	at, query := strings.LastIndex(raw, "@"), strings.IndexAny(raw, "?#")
	switch {
	case at >= 0 && query >= 0 && query < at:
		switch scheme, _, _ := strings.Cut(strings.ToLower(raw), "://"); scheme {
		case "https", "http", "socks5":
			return scheme + "://…"
		}
		return "://…"
	case query >= 0:
		raw = raw[:query]
	}
	if at >= 0 {
		return "…" + Text(raw[at:], maxStatusWord)
	}
	return Text(raw, maxStatusWord)
}
