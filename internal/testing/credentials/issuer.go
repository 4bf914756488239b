package credentials

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// IDToken returns an ID token for a user with an expiry time. Its signature is not valid.
func IDToken(name string, expires time.Time) string {
	encode := func(v any) string {
		data, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return encode(map[string]any{"alg": "none"}) + "." + encode(map[string]any{"sub": name, "exp": expires.Unix()}) + ".c2lnbmF0dXJl"
}

// Issuer is an OpenID Connect provider with a single client: ClientID, ClientSecret and RefreshToken.
type Issuer struct {
	*httptest.Server
	// Discovery and Token replace the correct responses.
	Discovery, Token http.HandlerFunc

	mu       sync.Mutex
	response map[string]any      // response of the token endpoint
	forms    []map[string]string // requests to the token endpoint
}

// Client and tokens known to an [Issuer].
const (
	ClientID     = "kubectl"
	ClientSecret = Planted + "-client"
	RefreshToken = Planted + "-refresh"
)

// NewIssuer starts an issuer. It is closed when the test ends.
func NewIssuer(t *testing.T) *Issuer {
	t.Helper()
	issuer := &Issuer{}
	issuer.Server = httptest.NewUnstartedServer(issuer)
	issuer.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	issuer.StartTLS()
	t.Cleanup(issuer.Close)
	return issuer
}

// IssuerURL returns the issuer URL.
func (i *Issuer) IssuerURL() string { return i.URL + "/realm/" }

// CAData returns the CA certificate of the issuer's server.
func (i *Issuer) CAData() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
}

// Respond sets the tokens of subsequent responses. Without refreshToken the old refresh token stays valid.
func (i *Issuer) Respond(idToken, refreshToken string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.response = map[string]any{"access_token": Planted, "token_type": "Bearer", "expires_in": 60, "id_token": idToken}
	if refreshToken != "" {
		i.response["refresh_token"] = refreshToken
	}
}

// Requests returns the form values of the token requests.
func (i *Issuer) Requests() []map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.forms
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/realm/.well-known/openid-configuration" && i.Discovery != nil:
		i.Discovery(w, r)
	case r.URL.Path == "/realm/.well-known/openid-configuration":
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, i.IssuerURL(), i.URL+"/token")
	case r.URL.Path == "/token" && r.Method == http.MethodPost:
		i.serveToken(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (i *Issuer) serveToken(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	form := map[string]string{
		"user": user, "password": password, "grant_type": r.PostFormValue("grant_type"), "refresh_token": r.PostFormValue("refresh_token"),
		"scope": r.PostFormValue("scope"),
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forms = append(i.forms, form)
	if i.Token != nil {
		i.Token(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(i.response)
}
