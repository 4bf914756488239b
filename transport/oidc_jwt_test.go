package transport

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func claims(json string) string {
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(json)) + ".s"
}

func TestTheExpiryOfAnIDTokenIsRead(t *testing.T) {
	for token, want := range map[string]int64{
		claims(`{"exp":1700000000}`):           1700000000,
		claims(`{"exp":1.7e9}`):                1700000000,
		claims(`{"exp":1700000000.75}`):        1700000000,
		claims(`{"exp":9e99}`):                 lastExpiry,
		claims(`{"exp":1700000000}`) + "\n":    1700000000,
		"h.eyJleHAiOjE3MDAwMDAwMDAgIH0==.sig":  1700000000, // padded
		claims(`{"sub":"ann","exp":17}`) + "_": 17,
	} {
		expires, err := expiryOf(token)
		require.NoError(t, err, token)
		assert.Equal(t, want, expires.Unix(), token)
	}
	for name, token := range map[string]string{
		"nothing": "", "opaque": planted, "two parts": "a.b", "four parts": "a.b.c.d", "no base64": "a.!" + planted + ".c",
		"no JSON": claims(planted), "a list": claims(`[1]`), "no claim": claims(`{"sub":"` + planted + `"}`), "null": claims(`{"exp":null}`),
		"a word": claims(`{"exp":"` + planted + `"}`), "zero": claims(`{"exp":0}`), "before time": claims(`{"exp":-1}`), "too much": claims(`{"exp":1e999}`),
	} {
		_, err := expiryOf(token)
		if assert.Error(t, err, name) {
			assert.NotContains(t, err.Error(), planted, name)
			assert.Contains(t, err.Error(), "log in again", name)
		}
	}
}

func FuzzIDTokenExpiry(f *testing.F) {
	f.Add("", jwtUntil("ann", time.Unix(1700000000, 0)))
	f.Add(`{"exp":1.7e9}`, "")
	f.Add(`{"exp":1e308}`, "a.b.c")
	f.Fuzz(func(t *testing.T, payload, token string) {
		if payload != "" {
			token = claims(payload)
		}
		expires, err := expiryOf(token)
		if err != nil {
			assert.True(t, expires.IsZero())
			return
		}
		assert.GreaterOrEqual(t, expires.Unix(), int64(0))
		assert.LessOrEqual(t, expires.Unix(), int64(lastExpiry))
	})
}
