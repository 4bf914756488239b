package transport_test

import (
	"testing"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
)

func TestARealServerKnowsTheUserByWhatAnExecPluginPrints(t *testing.T) {
	admin, token := sandbox(t, "admin"), sandbox(t, "token")
	for name, tc := range map[string]struct{ answer, user string }{
		"a token":       {transport.ExecToken(token.Token.Reveal()), "token-admin"},
		"a certificate": {transport.ExecCertificate(admin.CertData, []byte(admin.KeyData.Reveal())), "admin"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := transport.NewFakePlugin(t)
			fake.Serve(t, transport.Order{Stdout: tc.answer})
			user, groups, response := whoami(t, &transport.Config{Server: admin.Server, CAData: admin.CAData, CAFile: admin.CAFile, Exec: fake.Plugin(t)})
			assert.Equal(t, tc.user, user)
			assert.Contains(t, groups, "system:authenticated")
			assert.Equal(t, "HTTP/2.0", response.Proto)
		})
	}
}

func TestARealServersRefusalMakesAnExecPluginRunAgain(t *testing.T) {
	token := sandbox(t, "token")
	fake := transport.NewFakePlugin(t)
	fake.Serve(t, transport.Order{Stdout: transport.ExecToken("nobody's")}, transport.Order{Stdout: transport.ExecToken(token.Token.Reveal())})
	user, _, _ := whoami(t, &transport.Config{Server: token.Server, CAData: token.CAData, CAFile: token.CAFile, Exec: fake.Plugin(t)})
	assert.Equal(t, "token-admin", user)
}
