package noise

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// system fills p from the kernel's generator.
func system(p []byte) error {
	var provider windows.Handle
	err := windows.CryptAcquireContext(&provider, nil, nil, windows.PROV_RSA_FULL,
		windows.CRYPT_VERIFYCONTEXT|windows.CRYPT_SILENT)
	if err == nil {
		err = errors.Join(windows.CryptGenRandom(provider, uint32(len(p)), &p[0]),
			windows.CryptReleaseContext(provider, 0))
	}
	if err != nil {
		return fmt.Errorf("asking the operating system for a random key: %w", err)
	}
	return nil
}
