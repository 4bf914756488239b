package resourceversion_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/resourceversion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCompare_OrdersNumbersOfAnyLength(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"1", "1", 0},
		{"1", "2", -1},
		{"9", "10", -1},
		{"184500", "184499", 1},
		{"18446744073709551616", "18446744073709551615", 1},
		{"100000000000000000000000000000", "99999999999999999999999999999", 1},
	} {
		order, err := resourceversion.Compare(c.a, c.b)
		require.NoError(t, err)
		assert.Equal(t, c.want, order, "%s, %s", c.a, c.b)
		order, err = resourceversion.Compare(c.b, c.a)
		require.NoError(t, err)
		assert.Equal(t, -c.want, order, "%s, %s", c.b, c.a)
	}
}

func TestCompare_MalformedVersions(t *testing.T) {
	for _, version := range []string{"", "0", "01", "-1", "+1", "1.0", "1a", " 1", "٣"} {
		_, err := resourceversion.Compare(version, "1")
		require.EqualError(t, err, "resource version is not well formed: "+version)
		_, err = resourceversion.Compare("1", version)
		require.EqualError(t, err, "resource version is not well formed: "+version)
	}
}

func TestCompare_WithoutAllocation(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if order, err := resourceversion.Compare("184500", "184499"); order != 1 || err != nil {
			t.Error(order, err)
		}
	}))
}
