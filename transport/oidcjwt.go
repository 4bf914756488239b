package transport

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// lastExpiry is the end of what RFC 3339 can say.
const lastExpiry = 253402300799

// expiryOf is when an ID token expires, by its claim "exp": https://www.rfc-editor.org/rfc/rfc7519#section-4.1.4. The
// signature is for the API server to check. Its error shows nothing of the token.
func expiryOf(idToken string) (time.Time, error) {
	parts := strings.Split(strings.TrimSpace(idToken), ".")
	if len(parts) != 3 {
		return time.Time{}, errors.New("the ID token is no JWT, which has three parts: log in again with the provider's own tool")
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var exp struct {
		Exp json.Number `json:"exp"`
	}
	if err != nil || json.Unmarshal(claims, &exp) != nil {
		return time.Time{}, errors.New("the ID token's claims cannot be read: log in again with the provider's own tool")
	}
	// A NumericDate may have a fraction.
	seconds, err := exp.Exp.Float64()
	if err != nil || seconds <= 0 {
		return time.Time{}, errors.New("the ID token's claims do not say when it expires: log in again with the provider's own tool")
	}
	return time.Unix(int64(min(seconds, lastExpiry)), 0), nil
}
