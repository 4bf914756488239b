package transport

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

// jwtUntil is an ID token of a user until a time. Nobody checks its signature.
func jwtUntil(name string, end time.Time) string {
	encode := func(v any) string {
		data, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return encode(map[string]any{"alg": "none"}) + "." + encode(map[string]any{"sub": name, "exp": end.Unix()}) + ".c2lnbmF0dXJl"
}

// fakeIssuer is an OpenID Connect provider.
type fakeIssuer struct {
	*httptest.Server
	// discover and token take the place of the right answers.
	discover, token http.HandlerFunc

	mu     sync.Mutex
	answer map[string]any      // of the token endpoint
	forms  []map[string]string // that it got
}

func newFakeIssuer(t *testing.T) *fakeIssuer {
	t.Helper()
	issuer := &fakeIssuer{}
	issuer.Server = httptest.NewUnstartedServer(issuer)
	issuer.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	issuer.StartTLS()
	t.Cleanup(issuer.Close)
	return issuer
}

func (i *fakeIssuer) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
}

// oidc is the configuration of a user whose ID token is missing.
func (i *fakeIssuer) oidc() *OIDC {
	return &OIDC{Issuer: i.URL + "/realm/", ClientID: "kubectl", ClientSecret: NewSecret(planted + "-client"), RefreshToken: NewSecret(planted + "-refresh"), CAData: i.authority()}
}

func (i *fakeIssuer) give(idToken, refreshToken string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = map[string]any{"access_token": planted, "token_type": "Bearer", "expires_in": 60, "id_token": idToken}
	if refreshToken != "" {
		i.answer["refresh_token"] = refreshToken
	}
}

// got are the values of the requests for a token.
func (i *fakeIssuer) got() []map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.forms
}

func (i *fakeIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/realm/.well-known/openid-configuration" && i.discover != nil:
		i.discover(w, r)
	case r.URL.Path == "/realm/.well-known/openid-configuration":
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, i.URL+"/realm/", i.URL+"/token")
	case r.URL.Path == "/token" && r.Method == http.MethodPost:
		i.serveToken(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (i *fakeIssuer) serveToken(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	form := map[string]string{
		"user": user, "password": password, "grant_type": r.PostFormValue("grant_type"), "refresh_token": r.PostFormValue("refresh_token"),
		"scope": r.PostFormValue("scope"),
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forms = append(i.forms, form)
	if i.token != nil {
		i.token(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(i.answer)
}
