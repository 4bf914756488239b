package serve

import (
	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// warnOfDeprecation adds the warning for a deprecated version: its deprecationWarning, or a default text with the newest served
// version that is newer and not deprecated.
func (c *call) warnOfDeprecation() {
	isDeprecated := false
	text := ""
	better := ""
	for _, one := range nested.Maps(c.resource.Definition, "spec", "versions") {
		name := nested.String(one, "name")
		if name == c.resource.Version {
			isDeprecated = one["deprecated"] == true
			text = nested.String(one, "deprecationWarning")
			continue
		}
		isNewer := version.CompareKubeAwareVersionStrings(name, c.resource.Version) > 0
		if one["served"] == true && one["deprecated"] != true && isNewer && (better == "" || version.CompareKubeAwareVersionStrings(name, better) > 0) {
			better = name
		}
	}
	if !isDeprecated {
		return
	}
	if text == "" {
		text = c.resource.APIVersion() + " " + c.resource.Kind + " is deprecated"
		if better != "" {
			text += "; use " + c.resource.Group + "/" + better + " " + c.resource.Kind
		}
	}
	c.warn(text)
}
