package transport

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestARenewedTokenFileIsReadAgainAfterAMinuteAndAnUnreadableOneKeepsTheOldToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(token string) { require.NoError(t, os.WriteFile(path, []byte(token), 0o600)) }
	source := &tokenSource{path: path}
	start := time.Now()
	at := func(after time.Duration) string {
		token, err := source.current(start.Add(after))
		require.NoError(t, err)
		return token
	}

	write("first\n")
	assert.Equal(t, "first", at(0))
	write("second")
	assert.Equal(t, "first", at(59*time.Second))
	assert.Equal(t, "second", at(61*time.Second))
	write("")
	assert.Equal(t, "second", at(3*time.Minute), "an empty file is being written")
	require.NoError(t, os.Remove(path))
	assert.Equal(t, "second", at(6*time.Minute))
	write("third")
	assert.Equal(t, "third", at(6*time.Minute), "a failed read is tried again at once")

	_, err := (&tokenSource{path: path + ".empty"}).current(start)
	require.ErrorIs(t, err, os.ErrNotExist)
}
