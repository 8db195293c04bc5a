"""Every data source keeps the contract."""

from coremcmc import MemoryData
from tests.contracts.data_source import DataSourceContract


class TestMemoryData(DataSourceContract):
    @staticmethod
    def make(rows):
        return MemoryData(rows)
