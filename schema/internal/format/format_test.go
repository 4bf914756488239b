package format

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestValidator_Formats(t *testing.T) {
	for name, c := range map[string]struct{ valid, invalid []string }{
		"bsonobjectid":   {[]string{"507f1f77bcf86cd799439011"}, []string{"507f", "x07f1f77bcf86cd799439011"}},
		"uri":            {[]string{"https://example.com", "/path"}, []string{"", "path"}},
		"email":          {[]string{"a@example.com"}, []string{"a", "@"}},
		"hostname":       {[]string{"a", "1a", "a-", "a-b", "www.example.com", "日本.com"}, []string{"", "-a", "ab-c", "a.b1", "a..com"}},
		"ipv4":           {[]string{"10.0.0.1", "010.0.0.1"}, []string{"300.0.0.1", "fd00::1"}},
		"ipv6":           {[]string{"fd00::1"}, []string{"10.0.0.1", "fd00"}},
		"cidr":           {[]string{"10.0.0.0/8", "fd00::/8"}, []string{"10.0.0.0", "10.0.0.0/33"}},
		"mac":            {[]string{"01:23:45:67:89:ab"}, []string{"01:23"}},
		"uuid":           {[]string{"123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"}, []string{"123e4567"}},
		"uuid3":          {[]string{"123e4567-e89b-32d3-a456-426614174000"}, []string{"123e4567-e89b-12d3-a456-426614174000"}},
		"uuid4":          {[]string{"123e4567-e89b-42d3-a456-426614174000"}, []string{"123e4567-e89b-42d3-c456-426614174000"}},
		"uuid5":          {[]string{"123e4567-e89b-52d3-8456-426614174000"}, []string{"123e4567-e89b-42d3-8456-426614174000"}},
		"ssn":            {[]string{"123-45-6789"}, []string{"123456789", "123-45"}},
		"hexcolor":       {[]string{"#abc", "aabbcc"}, []string{"#ab", "#xyz"}},
		"byte":           {[]string{"aGVsbG8="}, []string{"", "aGVsbG8", "aGVs\nbG8="}},
		"password":       {[]string{"", "x"}, nil},
		"date":           {[]string{"2026-01-02"}, []string{"2026-13-02", "2026-01-02T00:00:00Z"}},
		"duration":       {[]string{"1h30m", "3 days", "1w"}, []string{"", "soon", "1"}},
		"date-time":      {[]string{"2026-01-02T03:04:05Z", "2026-01-02t03:04:05.123+99:99"}, []string{"2026-01-02", "2026-01-02T24:00:00Z", "2026-01-02T03:04:05"}},
		"k8s-short-name": {[]string{"a-b"}, []string{"a.b", "A"}},
		"k8s-long-name":  {[]string{"a.b"}, []string{"a..b"}},
	} {
		isValid, isKnown := Validator(name)
		assert.True(t, isKnown, name)
		for _, text := range c.valid {
			assert.True(t, isValid(text), "%s %q", name, text)
		}
		for _, text := range c.invalid {
			assert.False(t, isValid(text), "%s %q", name, text)
		}
	}
}

func TestValidator_OtherFormats(t *testing.T) {
	isValid, isKnown := Validator("isbn-10")
	assert.True(t, isKnown)
	assert.Nil(t, isValid)
	isValid, isKnown = Validator("int32")
	assert.False(t, isKnown)
	assert.Nil(t, isValid)
}
