package protobuf

import (
	"bufio"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/recorded"
)

// messages has the recorded messages, parsed at first use and shared by all servers.
var messages = sync.OnceValue(parse)

type table struct {
	kinds map[schema.GroupVersionKind]string
	types map[string]*message
}

type message struct{ fields map[int]messageField }

// messageField has the JSON name of a field, or "." for an inlined struct.
type messageField struct{ name, expression string }

func parse() *table {
	t := &table{kinds: map[schema.GroupVersionKind]string{}, types: map[string]*message{}}
	reader, err := recorded.ReadMessages()
	if err != nil {
		return t
	}
	var current *message
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 4:
			gv, _ := schema.ParseGroupVersion(strings.TrimPrefix(words[1], "core/"))
			t.kinds[gv.WithKind(words[2])] = words[3]
		case len(words) == 3:
			number, _ := strconv.Atoi(words[0])
			current.fields[number] = messageField{words[1], words[2]}
		case len(words) == 1:
			current = &message{fields: map[int]messageField{}}
			t.types[words[0]] = current
		}
	}
	return t
}
