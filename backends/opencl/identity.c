// SPDX-License-Identifier: Apache-2.0
// Identifies the hardware of a device by PCI address and UUID, so that the core recognizes a device
// that appears on several platforms or backends.
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "opencl.h"

// From cl_khr_device_uuid, cl_khr_pci_bus_info, cl_nv_device_attribute_query and
// cl_amd_device_attribute_query; OpenCL 1.2 headers lack them.
enum {
	DEVICE_UUID_KHR = 0x106a,
	PCI_BUS_INFO_KHR = 0x410f,
	PCI_BUS_ID_NV = 0x4008,
	PCI_SLOT_ID_NV = 0x4009,
	PCI_DOMAIN_ID_NV = 0x400a,
	TOPOLOGY_AMD = 0x4037,
	TOPOLOGY_PCIE_AMD = 1,
};

static bool get(cl_device_id id, cl_device_info what, void *to, size_t bytes)
{
	size_t got = 0;
	return clGetDeviceInfo(id, what, bytes, to, &got) == CL_SUCCESS && got == bytes;
}

static void fill_uuid(cl_device_id id, char *to, size_t cap)
{
	unsigned char b[16], set = 0;
	size_t n = 0;

	if (!get(id, DEVICE_UUID_KHR, b, sizeof b))
		return;
	for (size_t i = 0; i < sizeof b; i++)
		set |= b[i];
	for (size_t i = 0; set && i < sizeof b; i++)
		n += (size_t)snprintf(to + n, cap - n, i == 4 || i == 6 || i == 8 || i == 10 ?
				      "-%02x" : "%02x", b[i]);
}

static bool pci_of(cl_device_id id, cl_uint at[4])
{
	struct {
		cl_uint type;
		unsigned char unused[17], bus, device, function;
	} amd = { 0 };

	memset(at, 0, 4 * sizeof *at);
	if (get(id, PCI_BUS_INFO_KHR, at, 4 * sizeof *at))
		return true;
	if (get(id, PCI_BUS_ID_NV, &at[1], sizeof *at) &&
	    get(id, PCI_SLOT_ID_NV, &at[2], sizeof *at)) {
		at[3] = at[2] & 7; // the slot is device * 8 + function
		at[2] >>= 3;
		if (!get(id, PCI_DOMAIN_ID_NV, &at[0], sizeof *at)) // missing in old drivers
			at[0] = 0;
		return true;
	}
	if (!get(id, TOPOLOGY_AMD, &amd, sizeof amd) || amd.type != TOPOLOGY_PCIE_AMD)
		return false;
	at[0] = 0; // not reported
	at[1] = amd.bus;
	at[2] = amd.device;
	at[3] = amd.function;
	return true;
}

static void fill_pci(cl_device_id id, char *to, size_t cap)
{
	cl_uint at[4];

	// 0:0.0 is the host bridge: the driver does not know the address
	if (pci_of(id, at) && (at[0] || at[1] || at[2] || at[3]) && at[1] <= 255 && at[2] <= 31 &&
	    at[3] <= 7)
		snprintf(to, cap, "%04x:%02x:%02x.%x", at[0], at[1], at[2], at[3]);
}

void yk_cl_identify(struct yk_cl_device *d)
{
	struct yoke_device_info *info = &d->gpu.info;

	fill_uuid(d->id, info->uuid, sizeof info->uuid);
	fill_pci(d->id, info->pci, sizeof info->pci);
	for (uint32_t i = 0; i < d->gpu.index; i++) {
		const struct yk_cl_device *other = yk_cl_of(yk_gpu_device_at(i));
		if (other->platform != d->platform)
			continue;
		// devices of one platform are distinct, even if they are parts of one board
		if (!strcmp(other->gpu.info.uuid, info->uuid))
			info->uuid[0] = 0;
		if (!strcmp(other->gpu.info.pci, info->pci))
			info->pci[0] = 0;
	}
}
