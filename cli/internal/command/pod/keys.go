package pod

import (
	"fmt"
	"strings"
)

// parseKeys parses a sequence of keys such as ctrl-p,ctrl-q. "" means defaultDetachKeys.
func parseKeys(text string) ([]byte, error) {
	if text == "" {
		text = defaultDetachKeys
	}
	var keys []byte
	for name := range strings.SplitSeq(text, ",") {
		if len(name) == 1 {
			keys = append(keys, name[0])
			continue
		}
		key, ok := strings.CutPrefix(strings.ToLower(name), "ctrl-")
		if !ok || len(key) != 1 || !strings.Contains("abcdefghijklmnopqrstuvwxyz@[\\]^_", key) {
			return nil, fmt.Errorf("unknown key %q: keys are single characters and ctrl- with a letter or one of @[\\]^_", name)
		}
		keys = append(keys, strings.ToUpper(key)[0]-'@')
	}
	return keys, nil
}
