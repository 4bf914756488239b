// Package format validates the formats of strings in custom resources as the API server does: like package strfmt of kube-openapi,
// with its deviations from the standards.
package format

import (
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"
)

// Validator returns the function that validates a format, or nil. isKnown is true if the server validates it. Hyphens have no
// meaning in the names of formats.
func Validator(format string) (isValid func(string) bool, isKnown bool) {
	name := strings.ReplaceAll(format, "-", "")
	isValid = validators()[name]
	return isValid, isValid != nil || slices.Contains(rare(), name)
}

// rare returns the formats validated by the server alone.
func rare() []string { return []string{"isbn", "isbn10", "isbn13", "creditcard", "rgbcolor"} }

var validators = sync.OnceValue(func() map[string]func(string) bool {
	return map[string]func(string) bool{
		"bsonobjectid": func(s string) bool { b, err := hex.DecodeString(s); return err == nil && len(b) == 12 },
		"uri":          isRequestURI,
		"email":        func(s string) bool { a, err := mail.ParseAddress(s); return err == nil && a.Address != "" },
		"hostname":     isHostname,
		"ipv4":         func(s string) bool { return netutils.ParseIPSloppy(s) != nil && strings.Contains(s, ".") },
		"ipv6":         func(s string) bool { return net.ParseIP(s) != nil && strings.Contains(s, ":") },
		"cidr":         func(s string) bool { _, _, err := netutils.ParseCIDRSloppy(s); return err == nil },
		"mac":          func(s string) bool { _, err := net.ParseMAC(s); return err == nil },
		"uuid":         Matcher(uuidPattern("[0-9a-f]", "[0-9a-f]")),
		"uuid3":        Matcher(uuidPattern("3", "[0-9a-f]")),
		"uuid4":        Matcher(uuidPattern("4", "[89ab]")),
		"uuid5":        Matcher(uuidPattern("5", "[89ab]")),
		"ssn":          Matcher(`^\d{3}[- ]\d{2}[- ]\d{4}$`),
		"hexcolor":     Matcher(`^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`),
		"byte":         isBase64,
		"password":     func(string) bool { return true },
		"date":         func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil },
		"duration":     isDuration,
		"datetime":     isDateTime,
		"k8sshortname": func(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 },
		"k8slongname":  func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 },
	}
})

// uuidPattern returns the pattern of a UUID by the first digits of its third and fourth group.
func uuidPattern(version, variant string) string {
	return `(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?` + version + `[0-9a-f]{3}-?` + variant + `[0-9a-f]{3}-?[0-9a-f]{12}$`
}

func isRequestURI(s string) bool { _, err := url.ParseRequestURI(s); return err == nil }

// isBase64 reports whether s is base64 with padding, and not empty.
func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil && s != "" && !strings.ContainsAny(s, "\r\n")
}

const (
	maxHostname = 255
	maxLabel    = 63
)

// isHostname accepts letters and symbols of any script. A name with dots ends in a label of letters. A name without dots has a
// hyphen at most behind its first character.
func isHostname(s string) bool {
	if len(s) > maxHostname {
		return false
	}
	labels := strings.Split(s, ".")
	if len(labels) == 1 {
		return len(s) <= maxLabel && singleLabel(s)
	}
	for i, label := range labels {
		switch isLast := i == len(labels)-1; {
		case len(label) > maxLabel:
			return false
		case isLast:
			if !topLabel(label) {
				return false
			}
		case !hostLabel(label):
			return false
		}
	}
	return true
}

var (
	singleLabel = Matcher(`^[a-zA-Z0-9\p{S}\p{L}](-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?$`)

	topLabel  = Matcher(`^[a-zA-Z\p{L}]{2,63}$`)
	hostLabel = Matcher(`^[a-zA-Z0-9\p{S}\p{L}]([a-zA-Z0-9\p{S}\p{L}-]*[a-zA-Z0-9\p{S}\p{L}])?$`)
)

// durationUnits are the units of a duration beyond Go's: "3 days".
var durationUnits = Matcher(`(?i)\d+\s*(ns|nano|us|µs|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|wk|week)`)

func isDuration(s string) bool {
	_, err := time.ParseDuration(s)
	return err == nil || durationUnits(s)
}

var clock = Matcher(`^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$`)

// isDateTime accepts offsets of any size, and any character before the fraction of a second.
func isDateTime(s string) bool {
	parts := strings.Split(strings.ToLower(s), "t")
	if len(parts) < 2 {
		return false
	}
	_, err := time.Parse(time.DateOnly, parts[0])
	return err == nil && clock(parts[1])
}

// Matcher returns a function for strings. It compiles the pattern at its first use.
func Matcher(pattern string) func(string) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	return func(s string) bool { return compiled().MatchString(s) }
}
