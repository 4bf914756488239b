package kubeconfig

// RevealedJSON encodes a value with its secrets.
var RevealedJSON = revealedJSON
