package kubeconfig

import "go.yaml.in/yaml/v3"

// SetCurrentContext chooses the context that is used where none is asked for. The context may be in another file of
// the KUBECONFIG list, so it is not looked up; "" chooses none.
func (d *Document) SetCurrentContext(name string) {
	d.edits.field("current-context")
	setField(d.top(), "current-context", stringNode(name, d.top().Style&yaml.FlowStyle != 0))
}
